#include "kv/chunk_codes.h"

#include <algorithm>

#include "base/matrix.h"
#include "kv/finite.h"

namespace verbatim {

namespace {

constexpr int kHalfSteps = 16;  // sixteenths of the upper codes' step that lower codes count
constexpr int kLowerZero = 8;   // how a lower code of zero is stored

/// A matrix of codes that is being written: a CodedMatrix whose planes are writable.
struct OpenMatrix {
  CodeStorage storage;
  uint8_t* codes;
  uint8_t* lower;
  int64_t k;
  int64_t group;
  BFloat16* scales;
  BFloat16* zeros;

  int64_t scale_index(int64_t inner, int64_t column) const {
    return group == 0 ? column : column / group * k + inner;
  }
};

OpenMatrix open(const CodedMatrix& matrix) {
  return {matrix.storage, const_cast<uint8_t*>(matrix.codes),   const_cast<uint8_t*>(matrix.lower), matrix.k,
          matrix.group,   const_cast<BFloat16*>(matrix.scales), const_cast<BFloat16*>(matrix.zeros)};
}

/// The place of a code: a byte of the plane and one of its halves.
struct Place {
  int64_t byte;
  int shift;
};
Place place_of(const OpenMatrix& matrix, int64_t inner, int64_t column) {
  const int64_t tile = column / kPanelWidth * (matrix.k / kCodeTileInner) + inner / kCodeTileInner;
  const int64_t begin = tile * code_tile_bytes(matrix.storage);
  const int64_t quad = inner % kCodeTileInner / 4;
  const int64_t within = column % kPanelWidth * 4 + inner % 4;
  if (matrix.storage == kCodesBytes) return {begin + quad * 64 + within, 0};
  return {begin + quad / 2 * 64 + within, quad % 2 == 0 ? 0 : 4};
}

void put_half(uint8_t* plane, Place place, int code) {
  plane[place.byte] = static_cast<uint8_t>((plane[place.byte] & ~(15 << place.shift)) | code << place.shift);
}

/// The smallest BF16 number that is not below `value`.
BFloat16 round_up_bfloat16(float value) {
  BFloat16 rounded = to_bfloat16(value);
  if (to_float(rounded) < value) ++rounded.bits;
  return rounded;
}

/// A number rounded to BF16. The largest magnitudes are limited, so that the difference of two is finite.
float finite(float x) {
  constexpr float kLargest = 0x1p126f;
  return std::clamp(to_float(finite_bfloat16(x)), -kLargest, kLargest);
}

struct Range {
  float least;
  float largest;
  explicit Range(float x) : least(finite(x)), largest(least) {}
  void add(float number) {
    const float x = finite(number);
    least = std::min(least, x);
    largest = std::max(largest, x);
  }
};

/// The nearest whole number from 0 to `largest`.
int nearest(float x, int largest) {
  return static_cast<int>(std::clamp(x, 0.0f, static_cast<float>(largest)) + 0.5f);
}

/// Writes a group's scale and zero point.
void put_scale(const OpenMatrix& matrix, int64_t index, Range range) {
  const float steps = matrix.storage == kCodesBytes ? 255.0f : 15.0f;
  matrix.zeros[index] = to_bfloat16(range.least);
  matrix.scales[index] = round_up_bfloat16((range.largest - range.least) / steps);
}

/// The smallest range of a group for which numbers per step are finite. In a group of a smaller range every
/// number is stored as the zero point.
constexpr float kLeastScale = 0x1p-100f;

/// The quantization of a group: a number x becomes (x - zero) · per_step steps.
struct GroupScale {
  float zero;
  float per_step;
};
GroupScale group_scale(const OpenMatrix& matrix, int64_t index) {
  const float scale = to_float(matrix.scales[index]);
  return {to_float(matrix.zeros[index]), scale < kLeastScale ? 0.0f : 1.0f / scale};
}

inline void put_code(const OpenMatrix& matrix, int64_t inner, int64_t column, float x, GroupScale group) {
  const Place place = place_of(matrix, inner, column);
  const float steps = (finite(x) - group.zero) * group.per_step;
  if (matrix.storage == kCodesBytes) {
    matrix.codes[place.byte] = static_cast<uint8_t>(nearest(steps, 255));
    return;
  }
  const int upper = nearest(steps, 15);
  put_half(matrix.codes, place, upper);
  if (matrix.lower == nullptr) return;
  const float rest = (steps - static_cast<float>(upper)) * kHalfSteps + kLowerZero;
  put_half(matrix.lower, place, nearest(rest, 15));
}

float get_number(const OpenMatrix& matrix, int64_t inner, int64_t column, bool upper_only) {
  const int64_t index = matrix.scale_index(inner, column);
  const Place place = place_of(matrix, inner, column);
  const int code = matrix.codes[place.byte] >> place.shift & (matrix.storage == kCodesBytes ? 255 : 15);
  float steps = static_cast<float>(code);
  if (matrix.lower != nullptr && !upper_only) {
    steps += static_cast<float>((matrix.lower[place.byte] >> place.shift & 15) - kLowerZero) / kHalfSteps;
  }
  return to_float(matrix.zeros[index]) + steps * to_float(matrix.scales[index]);
}

/// A view of numbers that are given as [position][channel], as a matrix of inner dimensions × columns.
struct Numbers {
  const float* data;
  int64_t inner_stride;
  int64_t column_stride;
  int64_t inner;
  int64_t columns;

  float at(int64_t i, int64_t column) const { return data[i * inner_stride + column * column_stride]; }
};

/// Encodes a matrix group by group. Padding keeps scales and codes of zero.
void encode(const OpenMatrix& matrix, const Numbers& numbers) {
  if (matrix.group == 0) {
    for (int64_t column = 0; column < numbers.columns; ++column) {
      Range range(numbers.at(0, column));
      for (int64_t i = 1; i < numbers.inner; ++i) range.add(numbers.at(i, column));
      put_scale(matrix, column, range);
      const GroupScale scale = group_scale(matrix, column);
      for (int64_t i = 0; i < numbers.inner; ++i) put_code(matrix, i, column, numbers.at(i, column), scale);
    }
    return;
  }
  for (int64_t first = 0; first < numbers.columns; first += matrix.group) {
    const int64_t end = std::min(first + matrix.group, numbers.columns);
    for (int64_t i = 0; i < numbers.inner; ++i) {
      Range range(numbers.at(i, first));
      for (int64_t column = first + 1; column < end; ++column) range.add(numbers.at(i, column));
      put_scale(matrix, matrix.scale_index(i, first), range);
      const GroupScale scale = group_scale(matrix, matrix.scale_index(i, first));
      for (int64_t column = first; column < end; ++column) {
        put_code(matrix, i, column, numbers.at(i, column), scale);
      }
    }
  }
}

void decode(const OpenMatrix& matrix, int64_t inner, int64_t columns, bool upper_only, int64_t inner_stride,
            int64_t column_stride, float* out) {
  for (int64_t i = 0; i < inner; ++i) {
    for (int64_t column = 0; column < columns; ++column) {
      out[i * inner_stride + column * column_stride] = get_number(matrix, i, column, upper_only);
    }
  }
}

OpenMatrix open_keys(const ChunkRecord& record) {
  return open(record.layout.keys(record.codes, record.lower));
}
OpenMatrix open_values(const ChunkRecord& record) {
  return open(record.layout.values(record.codes, record.lower));
}

}  // namespace

void encode_chunk(const float* keys, const float* values, int64_t head_dim, const ChunkRecord& record) {
  encode(open_keys(record), {keys, 1, head_dim, head_dim, kAttentionChunk});
  encode(open_values(record), {values, head_dim, 1, kAttentionChunk, head_dim});
}

void encode_position(int64_t slot, const float* key, const float* value, int64_t head_dim,
                     const ChunkRecord& record) {
  const auto range_of = [&](const float* x) {
    Range range(x[0]);
    for (int64_t d = 1; d < head_dim; ++d) range.add(x[d]);
    return range;
  };
  const OpenMatrix keys = open_keys(record);
  put_scale(keys, slot, range_of(key));
  const GroupScale key_scale = group_scale(keys, slot);
  for (int64_t d = 0; d < head_dim; ++d) put_code(keys, d, slot, key[d], key_scale);
  const OpenMatrix values = open_values(record);
  const int64_t index = values.scale_index(slot, 0);
  put_scale(values, index, range_of(value));
  const GroupScale value_scale = group_scale(values, index);
  for (int64_t d = 0; d < head_dim; ++d) put_code(values, slot, d, value[d], value_scale);
}

void decode_chunk(const ChunkRecord& record, int64_t head_dim, bool upper_only, float* keys, float* values) {
  decode(open_keys(record), head_dim, kAttentionChunk, upper_only, 1, head_dim, keys);
  decode(open_values(record), kAttentionChunk, head_dim, upper_only, head_dim, 1, values);
}

}  // namespace verbatim
