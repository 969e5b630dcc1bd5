#include "checkpoint/scaled_codes.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/matrix.h"
#include "formats/tile_codes.h"

namespace verbatim {

namespace {

template <typename T>
T element(std::span<const std::byte> bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

/// Where AWQ has an output, of eight, in its word.
int awq_place(int64_t row) {
  constexpr int kPlaces[8] = {0, 4, 1, 5, 2, 6, 3, 7};
  return kPlaces[row % 8];
}

bool is_float8(CodeLayout layout) {
  return layout == CodeLayout::kFloat8E4M3 || layout == CodeLayout::kFloat8E5M2;
}

using Float8Table = std::array<float, 256>;

Float8Table make_table(float (*value)(uint8_t)) {
  Float8Table table{};
  for (int i = 0; i < 256; ++i) table[static_cast<size_t>(i)] = value(static_cast<uint8_t>(i));
  return table;
}

const Float8Table& float8_table(CodeLayout layout) {
  static const Float8Table e4m3 = make_table(float8_e4m3);
  static const Float8Table e5m2 = make_table(float8_e5m2);
  return layout == CodeLayout::kFloat8E4M3 ? e4m3 : e5m2;
}

/// Calls use(column, code) for the codes of a row of integers.
template <typename Use>
void for_each_code(const ScaledCodes& matrix, int64_t r, Use&& use) {
  const int per_word = 32 / matrix.bits;
  const uint32_t mask = (1u << matrix.bits) - 1;
  if (matrix.layout == CodeLayout::kAwq) {
    const int shift = matrix.bits * awq_place(r);
    const int64_t words = matrix.rows / per_word;
    for (int64_t c = 0; c < matrix.columns; ++c) {
      const auto word = element<uint32_t>(matrix.codes, c * words + r / per_word);
      use(c, static_cast<int32_t>(word >> shift & mask));
    }
    return;
  }
  const auto words = ceil_div<int64_t>(matrix.columns, per_word);
  const bool gptq = matrix.layout == CodeLayout::kGptq;
  for (int64_t w = 0; w < words; ++w) {
    auto word = element<uint32_t>(matrix.codes, gptq ? w * matrix.rows + r : r * words + w);
    for (int64_t c = w * per_word; c < std::min((w + 1) * per_word, matrix.columns); ++c) {
      use(c, static_cast<int32_t>(word & mask));
      word >>= matrix.bits;
    }
  }
}

/// Says the group of each input of a row, from the first input on, without dividing.
class Groups {
 public:
  explicit Groups(const ScaledCodes& matrix) : matrix_(matrix), left_(matrix.group_size) {}

  size_t next(int64_t column) {
    if (!matrix_.group_index.empty()) return static_cast<size_t>(matrix_.group(column));
    if (left_ == 0) {
      ++group_;
      left_ = matrix_.group_size;
    }
    --left_;
    return group_;
  }

 private:
  const ScaledCodes& matrix_;
  size_t group_ = 0;
  int64_t left_;
};

/// Whether the product of a scale and any number of FP8 is a BF16 number: whether so few bits are in the
/// scale's fraction that eight hold the product, which is far from the ends of the range.
bool keeps_bfloat16(float scale, CodeLayout layout) {
  if (scale == 0.0f) return true;
  const int spare_bits = layout == CodeLayout::kFloat8E4M3 ? 4 : 5;  // 8 less the bits of the number
  const auto bits = std::bit_cast<uint32_t>(scale);
  const int exponent = static_cast<int>(bits >> 23 & 255) - 127;
  return (bits & ((1u << (24 - spare_bits)) - 1)) == 0 && exponent > -100 && exponent < 100;
}

}  // namespace

float float8_e4m3(uint8_t bits) {
  const int exponent = bits >> 3 & 15;
  const int fraction = bits & 7;
  float value = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -9)
                              : std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
  if (exponent == 15 && fraction == 7) value = std::numeric_limits<float>::quiet_NaN();
  return (bits & 128) != 0 ? -value : value;
}

float float8_e5m2(uint8_t bits) {
  return to_float(Float16{static_cast<uint16_t>(bits << 8)});
}

float ScaledCodes::scale(int64_t r, int64_t g) const {
  const int64_t index = r / rows_per_scale * row_stride + g * group_stride;
  if (scales.dtype == DType::kF32) return element<float>(scales.data, index);
  if (scales.dtype == DType::kF16) return to_float(element<Float16>(scales.data, index));
  return to_float(element<BFloat16>(scales.data, index));
}

int32_t ScaledCodes::zero(int64_t r, int64_t g) const {
  if (is_float8(layout)) return 0;
  if (zeros.empty()) return 1 << (bits - 1);
  const int per_word = 32 / bits;
  const int64_t words = rows / per_word;
  const uint32_t mask = (1u << bits) - 1;
  const bool packed = layout == CodeLayout::kPacked;
  const auto word = element<uint32_t>(zeros, packed ? r / per_word * groups + g : g * words + r / per_word);
  const int place = layout == CodeLayout::kAwq ? awq_place(r) : static_cast<int>(r % per_word);
  return static_cast<int32_t>(((word >> (bits * place)) + static_cast<uint32_t>(zero_offset)) & mask);
}

int64_t ScaledCodes::group(int64_t column) const {
  return group_index.empty() ? column / group_size : element<int32_t>(group_index, column);
}

int64_t ScaledCodes::side_bytes() const {
  return std::ssize(scales.data) + std::ssize(zeros) + std::ssize(group_index);
}

void ScaledCodes::read_row(int64_t r, std::span<float> out) const {
  std::vector<float> row_scales(static_cast<size_t>(groups));
  for (int64_t g = 0; g < groups; ++g) row_scales[static_cast<size_t>(g)] = scale(r, g);
  Groups of_row(*this);
  if (is_float8(layout)) {
    const Float8Table& table = float8_table(layout);
    const std::span<const std::byte> row =
        codes.subspan(static_cast<size_t>(r * columns), static_cast<size_t>(columns));
    for (size_t c = 0; c < out.size(); ++c) {
      const size_t g = of_row.next(static_cast<int64_t>(c));
      out[c] = table[static_cast<uint8_t>(row[c])] * row_scales[g];
    }
    return;
  }
  std::vector<int32_t> row_zeros(static_cast<size_t>(groups));
  for (int64_t g = 0; g < groups; ++g) row_zeros[static_cast<size_t>(g)] = zero(r, g);
  for_each_code(*this, r, [&](int64_t c, int32_t code) {
    const size_t g = of_row.next(c);
    out[static_cast<size_t>(c)] = static_cast<float>(code - row_zeros[g]) * row_scales[g];
  });
}

void ScaledCodes::read_codes(int64_t r, std::span<int8_t> out, std::span<Float16> out_scales) const {
  for (int64_t run = 0; run < columns / kInnerStep; ++run) {
    out_scales[static_cast<size_t>(run)] = to_float16(scale(r, group(run * kInnerStep)));
  }
  std::vector<int32_t> row_zeros(static_cast<size_t>(groups));
  for (int64_t g = 0; g < groups; ++g) row_zeros[static_cast<size_t>(g)] = zero(r, g);
  Groups of_row(*this);
  for_each_code(*this, r, [&](int64_t c, int32_t code) {
    out[static_cast<size_t>(c)] = static_cast<int8_t>(code - row_zeros[of_row.next(c)]);
  });
}

bool ScaledCodes::shares_scales(int64_t inputs) const {
  if (group_size % inputs != 0 && groups > 1) return false;
  for (int64_t c = 0; !group_index.empty() && c < columns; ++c) {
    if (group(c) != group(c / inputs * inputs)) return false;
  }
  return true;
}

bool ScaledCodes::examine() {
  const bool floats = is_float8(layout);
  codes_fit = !floats && columns % kInnerStep == 0 && shares_scales(kInnerStep);
  fits_int4 = codes_fit && bits == 4 && shares_scales(kScaleGroup);
  fits_bfloat16 = floats;
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t r = 0; r < rows; r += rows_per_scale) {
      const float value = scale(r, g);
      if (!std::isfinite(value)) return false;
      if (floats) {
        fits_bfloat16 = fits_bfloat16 && keeps_bfloat16(value, layout);
        continue;
      }
      codes_fit = codes_fit && to_float(to_float16(value)) == value;
      // The differences of other codes are from -15 to 15.
      const int32_t zero_point = zero(r, g);
      if (bits == 8) codes_fit = codes_fit && zero_point == 128;
      middle_zeros = middle_zeros && zero_point == 1 << (bits - 1);
    }
  }
  fits_int4 = fits_int4 && codes_fit;
  return true;
}

}  // namespace verbatim
