#include "kv/hierarchical.h"

#include <algorithm>

#include "base/matrix.h"

namespace verbatim {

namespace {

/// The most rows that a pass may have. The ring of recent chunks has room for as many beside the buffer, so
/// it grows with this number, while passes over a prompt are bound by arithmetic with fewer rows already.
constexpr int64_t kMostRows = 256;

/// The number of channels of a value that share a scale: the wanted number if it divides the width.
int64_t value_group(int64_t group, int64_t width) {
  if (group >= width) return width;
  return width % group == 0 ? group : kQueryStep;
}

CodedLayout layout_of(const CacheOptions& options, int64_t head_dim) {
  const int64_t width = round_up(head_dim, kQueryStep);
  return {.storage = options.bits == 8 ? kCodesBoth : kCodesUpper,
          .width = width,
          .key_group = options.keys_by_position ? 0 : options.group,
          .value_group = options.values_by_channel ? 0 : value_group(options.group, width)};
}

/// The number of chunks that must be kept in BF16 at once: those of a pass's rows, those of the buffer of the
/// first row, and one more because rows may begin in the middle of a chunk.
int64_t ring_chunks(const CacheOptions& options, int64_t capacity) {
  const int64_t all = ceil_div(capacity, kAttentionChunk);
  return std::min(all, (options.buffer + kMostRows) / kAttentionChunk + 1);
}

}  // namespace

HierarchicalCache::HierarchicalCache(const CacheShape& shape, int64_t capacity, const CacheOptions& options)
    : KvCache(shape, round_up(capacity, kAttentionChunk)),
      layout_(layout_of(options, shape.head_dim)),
      flush_(options.buffer / 2),
      chunks_(capacity_ / kAttentionChunk),
      recent_(shape, ring_chunks(options, capacity) * kAttentionChunk),
      records_(static_cast<size_t>(shape.layers * shape.kv_heads * chunks_ * layout_.record_bytes())),
      lower_(static_cast<size_t>(shape.layers * shape.kv_heads * chunks_ * layout_.lower_bytes())),
      staging_(static_cast<size_t>(shape.kv_heads * 2 * kAttentionChunk * shape.head_dim)),
      encoded_(static_cast<size_t>(shape.layers), 0) {}

int64_t HierarchicalCache::most_rows() const {
  return recent_.capacity() < capacity_ ? kMostRows : capacity_;
}

CodedChunks HierarchicalCache::chunks(int64_t layer, int64_t head) const {
  const int64_t first = layer * shape_.kv_heads + head;
  return {.records = records_.data() + first * layout_.record_bytes(),
          .lower = lower_.data() + first * layout_.lower_bytes(),
          .stride = shape_.layers * shape_.kv_heads,
          .layout = layout_,
          .flush = flush_};
}

HeadCache HierarchicalCache::head(int64_t layer, int64_t head, CachePart part) const {
  HeadCache cache = recent_.head(layer, head);
  cache.ring = ring();
  cache.coded = chunks(layer, head);
  if (part == CachePart::kDraft) {
    cache.coded.lower = nullptr;
    cache.coded.layout.storage = kCodesUpper;
  }
  return cache;
}

void HierarchicalCache::write(int64_t layer, int64_t head, int64_t position, const float* key,
                              const float* value) {
  recent_.write(layer, head, position % recent_.capacity(), key, value);
}

bool HierarchicalCache::has_positions_to_encode(int64_t layer, int64_t last) const {
  return chunks(layer, 0).end_chunk(last) > encoded_[static_cast<size_t>(layer)];
}

void HierarchicalCache::encode_older_positions(int64_t layer, int64_t head, int64_t last) {
  const CodedChunks coded = chunks(layer, head);
  float* const keys = staging_.data() + head * 2 * kAttentionChunk * shape_.head_dim;
  float* const values = keys + kAttentionChunk * shape_.head_dim;
  for (int64_t chunk = encoded_[static_cast<size_t>(layer)]; chunk < coded.end_chunk(last); ++chunk) {
    recent_.read_chunk(layer, head, chunk % ring(), keys, values);
    encode_chunk(keys, values, shape_.head_dim,
                 {layout_, const_cast<uint8_t*>(coded.record(chunk)),
                  const_cast<uint8_t*>(coded.lower_record(chunk))});
  }
}

void HierarchicalCache::finish_encoding(int64_t layer, int64_t last) {
  int64_t& encoded = encoded_[static_cast<size_t>(layer)];
  encoded = std::max(encoded, chunks(layer, 0).end_chunk(last));
  written_ = std::max(written_, last / kAttentionChunk + 1);
}

void HierarchicalCache::set_length(int64_t length) {
  // Rows from the new length on read all chunks from `first` on in BF16, which must still be in the ring. So
  // does the row before, which is evaluated again if there is nothing else to evaluate.
  const int64_t first = chunks(0, 0).end_chunk(std::max<int64_t>(length - 1, 0));
  if (length < length_ && first < written_ - ring()) length = 0;
  // This is also needed if the cache does not get shorter: a pass that failed half way may have encoded
  // positions that are no part of the sequence.
  for (int64_t& encoded : encoded_) encoded = std::min(encoded, length / kAttentionChunk);
  if (length == 0) written_ = 0;
  length_ = length;
}

int64_t HierarchicalCache::bytes(int64_t positions) const {
  const int64_t encoded =
      ceil_div(positions, kAttentionChunk) * (layout_.record_bytes() + layout_.lower_bytes());
  return shape_.layers * shape_.kv_heads * encoded + recent_.bytes(std::min(recent_.capacity(), positions));
}

int64_t HierarchicalCache::bytes_read(int64_t positions, CachePart part) const {
  const CodedChunks coded = chunks(0, 0);
  const int64_t encoded = coded.end_chunk(positions - 1);
  const int64_t lower = part == CachePart::kWhole ? layout_.lower_bytes() : 0;
  const int64_t per_chunk = layout_.record_bytes() + lower;
  return shape_.layers * shape_.kv_heads * encoded * per_chunk +
         recent_.bytes(positions - encoded * kAttentionChunk);
}

}  // namespace verbatim
