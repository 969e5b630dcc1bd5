#include "kv/dense.h"

#include "base/matrix.h"

namespace verbatim {

namespace {

/// The value in BF16, NaN as zero and infinity as the largest number. A row that may not see a position
/// multiplies its value by a probability of zero, and only a finite value then leaves the row as it is.
BFloat16 finite_bfloat16(float value) {
  constexpr uint16_t kLargest = 0x7f7f;
  const BFloat16 rounded = to_bfloat16(value);
  const uint16_t magnitude = rounded.bits & 0x7fff;
  if (magnitude < 0x7f80) return rounded;
  if (magnitude > 0x7f80) return {0};
  return {static_cast<uint16_t>(rounded.bits - magnitude + kLargest)};
}

}  // namespace

DenseCache::DenseCache(const CacheShape& shape, int64_t capacity)
    : shape_(shape),
      width_(round_up(shape.head_dim, kInnerStep)),
      capacity_(round_up(capacity, kAttentionChunk)),
      data_(static_cast<size_t>(shape.layers * shape.kv_heads * capacity_ * width_ * 2)) {}

BFloat16* DenseCache::head_data(int64_t layer, int64_t head) const {
  return data_.data() + (layer * shape_.kv_heads + head) * capacity_ * width_ * 2;
}

HeadCache DenseCache::head(int64_t layer, int64_t head) const {
  const BFloat16* const data = head_data(layer, head);
  return {data, data + kAttentionChunk * width_, 2 * kAttentionChunk * width_};
}

void DenseCache::write(int64_t layer, int64_t head, int64_t position, const float* key, const float* value) {
  BFloat16* const keys = head_data(layer, head) + position / kAttentionChunk * 2 * kAttentionChunk * width_;
  BFloat16* const values = keys + kAttentionChunk * width_;
  const int64_t slot = position % kAttentionChunk;
  BFloat16* const key_lane = keys + slot / kPanelWidth * width_ * kPanelWidth + slot % kPanelWidth * 2;
  for (int64_t d = 0; d < shape_.head_dim; ++d) {
    key_lane[d / 2 * 2 * kPanelWidth + d % 2] = to_bfloat16(key[d]);
  }
  BFloat16* const value_pair = values + slot / 2 * 2 * kPanelWidth + slot % 2;
  for (int64_t d = 0; d < shape_.head_dim; ++d) {
    value_pair[d / kPanelWidth * kAttentionChunk * kPanelWidth + d % kPanelWidth * 2] =
        finite_bfloat16(value[d]);
  }
}

}  // namespace verbatim
