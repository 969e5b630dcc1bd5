#pragma once

#include "base/aligned_buffer.h"
#include "formats/packed_matrix.h"
#include "kv/cache.h"

namespace verbatim {

/// Keys and values in BF16 (or F16, for comparison), in the panel layout that attention reads
/// (attention/attention.h).
class DenseCache : public KvCache {
 public:
  /// Reserves the memory. Throws Error(kMachine), saying how much is needed, if that fails.
  DenseCache(const CacheShape& shape, int64_t capacity, Element element = Element::kBf16);

  void write(int64_t layer, int64_t head, int64_t position, const float* key, const float* value) override;
  HeadCache head(int64_t layer, int64_t head, CachePart part = CachePart::kWhole) const override;
  std::span<std::byte> stored(int64_t positions) const override;
  int64_t bytes(int64_t positions) const override;
  int64_t bytes_read(int64_t positions, CachePart) const override { return bytes(positions); }

  /// Copies one head's key and value, bit for bit, from position `from_position` of other panels, which have
  /// the same width and type of element.
  void copy(int64_t layer, int64_t head, int64_t position, const HeadCache& from, int64_t from_position);

  /// Reads a chunk of one head back as floats: [kAttentionChunk][head_dim] each.
  void read_chunk(int64_t layer, int64_t head, int64_t chunk, float* keys, float* values) const;

  /// The bytes of keys and values of `positions` positions in a BF16 cache of this shape.
  static int64_t bytes_of(const CacheShape& shape, int64_t positions);
  /// The head dimension padded to whole inner steps.
  int64_t width() const { return width_; }
  /// The bytes of the keys and values of one position, in all layers together.
  int64_t bytes_per_position() const { return bytes(1); }

 private:
  int64_t chunk_stride() const;
  uint16_t* chunk_data(int64_t layer, int64_t head, int64_t chunk) const;

  Element element_;
  int64_t width_;
  /// [chunk][layer][head]{keys, values}: one chunk of all layers and heads lies together, because it is
  /// written together. If all chunks of a head lay together, each head would take huge pages of its own,
  /// mostly for positions that are not written yet.
  Buffer<uint16_t> data_;
};

}  // namespace verbatim
