#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/float16.h"
#include "checkpoint/checkpoint.h"

namespace verbatim {

/// How the codes of a matrix lie in a quantized safetensors file. Codes of 4 or 8 bits are packed into words
/// of 32 bits, in all layouts but the first.
enum class CodeLayout : uint8_t {
  kFloat8E4M3,  ///< a number of eight bits per weight, row after row
  kFloat8E5M2,
  kGptq,  ///< a word holds inputs of one output, the first lowest; words of all outputs lie side by side
  kAwq,   ///< a word holds eight outputs of one input, in the order 0, 2, 4, 6, 1, 3, 5, 7, the first lowest
  kPacked,  ///< compressed-tensors: a word holds inputs of one output, the first lowest, row after row
};

/// The value of a number of eight bits: sign, four bits of exponent, three of fraction. There is no infinity.
float float8_e4m3(uint8_t bits);
/// The value of the upper byte of an F16 number.
float float8_e5m2(uint8_t bits);

/// A matrix of a quantized safetensors file: codes, and the tensors beside them that turn these into weights.
/// A weight is (code - zero point) x scale, rounded once to F32; FP8 has no zero points.
struct ScaledCodes {
  CodeLayout layout = CodeLayout::kFloat8E4M3;
  int bits = 8;
  int64_t rows = 0;
  int64_t columns = 0;
  std::span<const std::byte> codes;

  // The scale of row r and group g is element (r / rows_per_scale) * row_stride + g * group_stride.
  TensorView scales;  ///< in F32, F16 or BF16
  int64_t rows_per_scale = 1;
  int64_t row_stride = 0;
  int64_t group_stride = 0;

  int64_t group_size = 0;  ///< the inputs that share a scale; the last group may have fewer
  int64_t groups = 1;
  std::span<const std::byte> group_index;  ///< the group of every input, in 32 bits; empty: consecutive ones
  std::span<const std::byte> zeros;        ///< packed zero points; empty: the middle of the codes
  int zero_offset = 0;                     ///< what is added to a zero point, modulo the number of codes

  bool codes_fit = false;      ///< whether read_codes() may be called; set by examine()
  bool fits_int4 = false;      ///< whether `int4-asymmetric` holds the codes and scales; set by examine()
  bool middle_zeros = true;    ///< whether `int4` does, too: whether zero points are 8; set by examine()
  bool fits_bfloat16 = false;  ///< whether every weight is a BF16 number for certain; set by examine()

  float scale(int64_t r, int64_t g) const;
  int32_t zero(int64_t r, int64_t g) const;
  int64_t group(int64_t column) const;
  /// The bytes of everything beside the codes.
  int64_t side_bytes() const;

  void read_row(int64_t r, std::span<float> out) const;
  /// Reads differences of codes and zero points, and the F16 scales of every 32 of them.
  void read_codes(int64_t r, std::span<int8_t> out, std::span<Float16> out_scales) const;

  /// Whether this many consecutive inputs, counted from the first, always share a scale.
  bool shares_scales(int64_t inputs) const;
  /// Sets the fields that say so. Returns whether every scale is finite.
  bool examine();
};

}  // namespace verbatim
