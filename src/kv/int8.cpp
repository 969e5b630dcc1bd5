#include "kv/int8.h"

#include "base/matrix.h"

namespace verbatim {

Int8Cache::Int8Cache(const CacheShape& shape, int64_t capacity)
    : KvCache(shape, round_up(capacity, kAttentionChunk)),
      layout_{.storage = kCodesBytes,
              .width = round_up(shape.head_dim, kQueryStep),
              .key_group = 0,
              .value_group = round_up(shape.head_dim, kQueryStep)},
      records_(static_cast<size_t>(shape.layers * shape.kv_heads * (capacity_ / kAttentionChunk) *
                                   layout_.record_bytes())) {}

HeadCache Int8Cache::head(int64_t layer, int64_t head, CachePart) const {
  const int64_t first = layer * shape_.kv_heads + head;
  return {.coded = {.records = records_.data() + first * layout_.record_bytes(),
                    .stride = shape_.layers * shape_.kv_heads,
                    .layout = layout_}};
}

void Int8Cache::write(int64_t layer, int64_t head, int64_t position, const float* key, const float* value) {
  const uint8_t* const record = this->head(layer, head).coded.record(position / kAttentionChunk);
  encode_position(position % kAttentionChunk, key, value, shape_.head_dim,
                  {layout_, const_cast<uint8_t*>(record), nullptr});
}

int64_t Int8Cache::bytes(int64_t positions) const {
  return shape_.layers * shape_.kv_heads * ceil_div(positions, kAttentionChunk) * layout_.record_bytes();
}

}  // namespace verbatim
