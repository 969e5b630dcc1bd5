#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/float16.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf_blocks.h"
#include "checkpoint/scaled_codes.h"

namespace verbatim {

namespace {

constexpr std::array<std::string_view, kDTypeCount + 11> kNames = {
    "F32",     "F16",   "BF16",   "Q4_0",   "Q4_1",    "Q5_0",    "Q5_1",        "Q8_0",
    "Q2_K",    "Q3_K",  "Q4_K",   "Q5_K",   "Q6_K",    "IQ2_XXS", "IQ2_XS",      "IQ2_S",
    "IQ3_XXS", "IQ3_S", "IQ4_NL", "IQ4_XS", "MXFP4",   "U8",      "MXFP4_APART", "F8_E4M3",
    "F8_E5M2", "GPTQ4", "GPTQ8",  "AWQ4",   "PACKED4", "PACKED8", "I32",         "I64"};

/// Tensors of safetensors files lie at any address, so elements are copied out.
template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

float to_float(float value) {
  return value;
}
float to_float(int32_t value) {
  return static_cast<float>(value);
}
float to_float(int64_t value) {
  return static_cast<float>(value);
}
template <typename T>
void convert_row(const std::byte* from, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = to_float(load<T>(from + i * sizeof(T)));
}

/// Converts a column of a file's matrix with `width` columns.
template <typename T>
void convert_column(const std::byte* from, size_t width, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = to_float(load<T>(from + i * width * sizeof(T)));
}

/// Converts a row of whole blocks.
void convert_blocks(const BlockType& type, const std::byte* from, std::span<float> out) {
  const auto* block = reinterpret_cast<const uint8_t*>(from);
  for (size_t i = 0; i < out.size(); i += type.elements, block += type.bytes) {
    type.dequantize(block, out.data() + i);
  }
}

/// Converts pairs of E2M1 numbers, of which 32 share a power of two. The highest power stands for NaN.
void convert_apart(const std::byte* codes, const std::byte* scales, std::span<float> out) {
  constexpr float kValues[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                 -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};
  constexpr size_t kGroup = 32;
  for (size_t begin = 0; begin < out.size(); begin += kGroup) {
    const int exponent = static_cast<uint8_t>(scales[begin / kGroup]);
    const float scale = exponent == 255 ? std::nanf("") : std::ldexp(1.0f, exponent - 127);
    for (size_t i = begin; i < begin + kGroup; i += 2) {
      const auto pair = static_cast<uint8_t>(codes[i / 2]);
      out[i] = kValues[pair & 15] * scale;
      out[i + 1] = kValues[pair >> 4] * scale;
    }
  }
}

}  // namespace

std::string dtype_name(DType dtype) {
  return std::string(kNames[static_cast<size_t>(dtype)]);
}

size_t dtype_bytes(DType dtype, size_t elements) {
  if (const BlockType* const block = block_type(dtype)) return elements / block->elements * block->bytes;
  switch (dtype) {
    case DType::kMXFP4Apart:
    case DType::kGptq4:
    case DType::kAwq4:
    case DType::kPacked4:
      return elements / 2;
    case DType::kU8:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
    case DType::kGptq8:
    case DType::kPacked8:
      return elements;
    case DType::kF32:
    case DType::kI32:
      return elements * 4;
    case DType::kI64:
      return elements * 8;
    default:
      return elements * 2;
  }
}

int64_t TensorView::rows() const {
  int64_t count = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) count *= shape[i];
  return count;
}

int64_t TensorView::stored_size() const {
  return std::ssize(data) + (scaled != nullptr ? scaled->side_bytes() : 0);
}

void TensorView::read_row(int64_t r, std::span<float> out) const {
  const size_t bytes = dtype_bytes(dtype, static_cast<size_t>(columns()));
  if (r < 0 || r >= rows() || out.size() != static_cast<size_t>(columns())) {
    fail(ErrorKind::kUsage, "a row {} of {} elements was asked of a tensor of {} rows of {}", r, out.size(),
         rows(), columns());
  }
  if (out.empty()) return;
  if (scaled != nullptr) return scaled->read_row(r, out);
  if (transposed) {
    const auto width = static_cast<size_t>(rows());
    const std::byte* const first = data.data() + dtype_bytes(dtype, static_cast<size_t>(r));
    if (dtype == DType::kF32) return convert_column<float>(first, width, out);
    if (dtype == DType::kF16) return convert_column<Float16>(first, width, out);
    return convert_column<BFloat16>(first, width, out);
  }
  const std::byte* from = data.data() + static_cast<size_t>(r) * bytes;
  if (const BlockType* const block = block_type(dtype)) return convert_blocks(*block, from, out);
  if (dtype == DType::kMXFP4Apart) {
    convert_apart(from, scales.data() + static_cast<size_t>(r) * out.size() / 32, out);
  } else if (dtype == DType::kU8) {
    std::transform(from, from + bytes, out.begin(), [](std::byte b) { return static_cast<float>(b); });
  } else if (dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2) {
    const auto value = dtype == DType::kF8E4M3 ? float8_e4m3 : float8_e5m2;
    std::transform(from, from + bytes, out.begin(),
                   [&](std::byte b) { return value(static_cast<uint8_t>(b)); });
  } else if (dtype == DType::kI32) {
    convert_row<int32_t>(from, out);
  } else if (dtype == DType::kI64) {
    convert_row<int64_t>(from, out);
  } else if (dtype == DType::kF32) {
    std::memcpy(out.data(), from, bytes);
  } else if (dtype == DType::kF16) {
    convert_row<Float16>(from, out);
  } else {
    convert_row<BFloat16>(from, out);
  }
}

bool TensorView::is_bf16() const {
  return dtype == DType::kBF16 || (scaled != nullptr && scaled->fits_bfloat16);
}

std::optional<DType> TensorView::nearest_type() const {
  if (scaled == nullptr || scaled->codes_fit) return std::nullopt;
  return scaled->scales.dtype == DType::kF16 && dtype != DType::kF8E4M3 && dtype != DType::kF8E5M2
             ? DType::kF16
             : DType::kBF16;
}

std::optional<Format> TensorView::int4_format() const {
  if (scaled == nullptr || !scaled->fits_int4) return std::nullopt;
  return scaled->middle_zeros ? Format::kInt4 : Format::kInt4Asymmetric;
}

bool TensorView::has_codes() const {
  if (scaled != nullptr) return scaled->codes_fit;
  const BlockType* const block = block_type(dtype);
  return block != nullptr && block->codes != nullptr;
}

void TensorView::read_codes(int64_t r, std::span<int8_t> codes, std::span<Float16> scales) const {
  const auto count = static_cast<size_t>(columns());
  if (!has_codes() || r < 0 || r >= rows() || codes.size() != count) {
    fail(ErrorKind::kUsage, "a row {} of {} codes was asked of a tensor in {}", r, codes.size(),
         dtype_name(dtype));
  }
  if (scaled != nullptr) return scaled->read_codes(r, codes, scales);
  const BlockType& type = *block_type(dtype);
  const std::byte* block = data.data() + static_cast<size_t>(r) * dtype_bytes(dtype, count);
  for (size_t i = 0; i < count; i += type.elements, block += type.bytes) {
    scales[i / type.elements] = load<Float16>(block);
    type.codes(reinterpret_cast<const uint8_t*>(block), codes.data() + i);
  }
}

std::optional<BlockShape> TensorView::block_shape() const {
  const BlockType* const block = block_type(dtype);
  if (block == nullptr || block->take_apart == nullptr) return std::nullopt;
  return block->shape;
}

void TensorView::read_blocks(int64_t r, std::span<KQuantBlock> blocks) const {
  const auto count = static_cast<size_t>(columns());
  if (!block_shape() || r < 0 || r >= rows() || blocks.size() * kBlockInputs != count) {
    fail(ErrorKind::kUsage, "a row {} of {} blocks was asked of a tensor in {}", r, blocks.size(),
         dtype_name(dtype));
  }
  const BlockType& type = *block_type(dtype);
  const auto* from =
      reinterpret_cast<const uint8_t*>(data.data()) + static_cast<size_t>(r) * dtype_bytes(dtype, count);
  for (KQuantBlock& block : blocks) {
    block = {};
    type.take_apart(from, &block);
    from += type.bytes;
  }
}

}  // namespace verbatim
