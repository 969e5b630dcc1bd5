#include "kv/f32.h"

#include "base/matrix.h"
#include "kv/finite.h"
#include "kv/panel_place.h"

namespace verbatim {

F32Cache::F32Cache(const CacheShape& shape, int64_t capacity)
    : KvCache(shape, round_up(capacity, kAttentionChunk)),
      width_(round_up(shape.head_dim, kInnerStep)),
      data_(static_cast<size_t>(shape.layers * shape.kv_heads * capacity_ * width_ * 2)) {}

int64_t F32Cache::chunk_stride() const {
  return shape_.layers * shape_.kv_heads * 2 * kAttentionChunk * width_;
}

float* F32Cache::head_data(int64_t layer, int64_t head) const {
  return data_.data() + (layer * shape_.kv_heads + head) * 2 * kAttentionChunk * width_;
}

HeadCache F32Cache::head(int64_t layer, int64_t head, CachePart) const {
  const float* const keys = head_data(layer, head);
  HeadCache cache;
  cache.f32_keys = keys;
  cache.f32_values = keys + kAttentionChunk * width_;
  cache.chunk_stride = chunk_stride();
  cache.width = width_;
  return cache;
}

void F32Cache::write(int64_t layer, int64_t head, int64_t position, const float* key, const float* value) {
  float* const keys = head_data(layer, head) + position / kAttentionChunk * chunk_stride();
  float* const values = keys + kAttentionChunk * width_;
  const int64_t slot = position % kAttentionChunk;
  for (int64_t d = 0; d < shape_.head_dim; ++d) {
    keys[unpaired_place(d, slot, width_)] = key[d];
    values[unpaired_place(slot, d, kAttentionChunk)] = finite_float(value[d]);
  }
}

std::span<std::byte> F32Cache::stored(int64_t positions) const {
  const int64_t chunks = ceil_div(positions, kAttentionChunk);
  return std::as_writable_bytes(std::span(data_.data(), static_cast<size_t>(chunks * chunk_stride())));
}

int64_t F32Cache::bytes(int64_t positions) const {
  return positions * shape_.layers * shape_.kv_heads * width_ * 2 * int64_t{sizeof(float)};
}

}  // namespace verbatim
