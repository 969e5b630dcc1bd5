#include "kv/dense.h"

#include "base/matrix.h"
#include "kv/finite.h"
#include "kv/panel_place.h"

namespace verbatim {

DenseCache::DenseCache(const CacheShape& shape, int64_t capacity, Element element)
    : KvCache(shape, round_up(capacity, kAttentionChunk)),
      element_(element),
      width_(round_up(shape.head_dim, kInnerStep)),
      data_(static_cast<size_t>(shape.layers * shape.kv_heads * capacity_ * width_ * 2)) {}

int64_t DenseCache::chunk_stride() const {
  return shape_.layers * shape_.kv_heads * 2 * kAttentionChunk * width_;
}

uint16_t* DenseCache::chunk_data(int64_t layer, int64_t head, int64_t chunk) const {
  return data_.data() + chunk * chunk_stride() +
         (layer * shape_.kv_heads + head) * 2 * kAttentionChunk * width_;
}

HeadCache DenseCache::head(int64_t layer, int64_t head, CachePart) const {
  const uint16_t* const keys = chunk_data(layer, head, 0);
  const uint16_t* const values = keys + kAttentionChunk * width_;
  HeadCache cache;
  cache.chunk_stride = chunk_stride();
  cache.width = width_;
  if (element_ == Element::kF16) {
    cache.f16_keys = reinterpret_cast<const Float16*>(keys);
    cache.f16_values = reinterpret_cast<const Float16*>(values);
  } else {
    cache.keys = reinterpret_cast<const BFloat16*>(keys);
    cache.values = reinterpret_cast<const BFloat16*>(values);
  }
  return cache;
}

void DenseCache::write(int64_t layer, int64_t head, int64_t position, const float* key, const float* value) {
  uint16_t* const keys = chunk_data(layer, head, position / kAttentionChunk);
  uint16_t* const values = keys + kAttentionChunk * width_;
  const int64_t slot = position % kAttentionChunk;
  const bool f16 = element_ == Element::kF16;
  for (int64_t d = 0; d < shape_.head_dim; ++d) {
    keys[panel_place(element_, d, slot, width_)] =
        f16 ? finite_float16(key[d]).bits : to_bfloat16(key[d]).bits;
    values[panel_place(element_, slot, d, kAttentionChunk)] =
        f16 ? finite_float16(value[d]).bits : finite_bfloat16(value[d]).bits;
  }
}

void DenseCache::copy(int64_t layer, int64_t head, int64_t position, const HeadCache& from,
                      int64_t from_position) {
  const PanelChunk source = from.chunk(from_position / kAttentionChunk);
  const bool f16 = element_ == Element::kF16;
  const auto* const keys = f16 ? &source.f16_keys->bits : &source.keys->bits;
  const auto* const values = f16 ? &source.f16_values->bits : &source.values->bits;
  uint16_t* const target = chunk_data(layer, head, position / kAttentionChunk);
  const int64_t source_slot = from_position % kAttentionChunk;
  const int64_t slot = position % kAttentionChunk;
  for (int64_t d = 0; d < shape_.head_dim; ++d) {
    target[panel_place(element_, d, slot, width_)] = keys[panel_place(element_, d, source_slot, width_)];
    target[kAttentionChunk * width_ + panel_place(element_, slot, d, kAttentionChunk)] =
        values[panel_place(element_, source_slot, d, source.positions)];
  }
}

void DenseCache::read_chunk(int64_t layer, int64_t head, int64_t chunk, float* keys, float* values) const {
  const uint16_t* const key_data = chunk_data(layer, head, chunk);
  const uint16_t* const value_data = key_data + kAttentionChunk * width_;
  const auto number = [&](uint16_t bits) {
    return element_ == Element::kF16 ? to_float(Float16{bits}) : to_float(BFloat16{bits});
  };
  for (int64_t slot = 0; slot < kAttentionChunk; ++slot) {
    for (int64_t d = 0; d < shape_.head_dim; ++d) {
      keys[slot * shape_.head_dim + d] = number(key_data[panel_place(element_, d, slot, width_)]);
      values[slot * shape_.head_dim + d] =
          number(value_data[panel_place(element_, slot, d, kAttentionChunk)]);
    }
  }
}

std::span<std::byte> DenseCache::stored(int64_t positions) const {
  const int64_t chunks = (positions + kAttentionChunk - 1) / kAttentionChunk;
  return std::as_writable_bytes(std::span(data_.data(), static_cast<size_t>(chunks * chunk_stride())));
}

int64_t DenseCache::bytes(int64_t positions) const {
  return bytes_of(shape_, positions);
}

int64_t DenseCache::bytes_of(const CacheShape& shape, int64_t positions) {
  constexpr int64_t kKeysAndValues = 2;
  return positions * shape.layers * shape.kv_heads * round_up(shape.head_dim, kInnerStep) * kKeysAndValues *
         int64_t{sizeof(uint16_t)};
}

}  // namespace verbatim
