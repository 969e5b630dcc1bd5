#pragma once

#include "base/aligned_buffer.h"
#include "formats/packed_matrix.h"
#include "kv/cache.h"

namespace verbatim {

/// Keys and values in BF16 (or F16, for comparison), in the panel layout that attention reads
/// (kernels/attention.h).
class DenseCache : public KvCache {
 public:
  /// Throws Error(kMachine) when the reservation fails, saying how much it would take.
  DenseCache(const CacheShape& shape, int64_t capacity, Element element = Element::kBf16);

  void write(int64_t layer, int64_t head, int64_t position, const float* key, const float* value) override;
  HeadCache head(int64_t layer, int64_t head, CachePart part = CachePart::kWhole) const override;
  std::span<std::byte> stored(int64_t positions) const override;
  int64_t bytes(int64_t positions) const override;
  int64_t bytes_read(int64_t positions, CachePart) const override { return bytes(positions); }

  /// Takes over, bit for bit, what panels of the same width and kind of element hold at a position.
  void copy(int64_t layer, int64_t head, int64_t position, const HeadCache& from, int64_t from_position);

  /// Reads a chunk back: [kAttentionChunk][head_dim] floats each.
  void read_chunk(int64_t layer, int64_t head, int64_t chunk, float* keys, float* values) const;

  /// Bytes of keys and values of so many positions in a cache of this shape.
  static int64_t bytes_of(const CacheShape& shape, int64_t positions);
  /// The head dimension padded to whole inner steps.
  int64_t width() const { return width_; }
  /// Bytes of keys and values per position, all layers.
  int64_t bytes_per_position() const { return bytes(1); }

 private:
  int64_t chunk_stride() const;
  uint16_t* chunk_data(int64_t layer, int64_t head, int64_t chunk) const;

  Element element_;
  int64_t width_;
  /// [chunk][layer][head]{keys, values}: what is written lies together. With the chunks of a head together
  /// instead, each of them would take huge pages of its own, most of their memory for positions to come.
  Buffer<uint16_t> data_;
};

}  // namespace verbatim
