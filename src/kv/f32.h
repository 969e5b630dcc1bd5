#pragma once

#include "base/aligned_buffer.h"
#include "kv/cache.h"

namespace verbatim {

/// Keys and values in F32, in the panel layout that attention reads (attention/attention.h). Attention rounds
/// nothing to 16 bits on its way through this cache: queries and probabilities are in F32, too. It is for
/// comparison, with other engines and with the caches that round.
class F32Cache : public KvCache {
 public:
  /// Reserves the memory. Throws Error(kMachine), saying how much is needed, if that fails.
  F32Cache(const CacheShape& shape, int64_t capacity);

  void write(int64_t layer, int64_t head, int64_t position, const float* key, const float* value) override;
  bool reads_f32_queries() const override { return true; }
  HeadCache head(int64_t layer, int64_t head, CachePart part = CachePart::kWhole) const override;
  std::span<std::byte> stored(int64_t positions) const override;
  int64_t bytes(int64_t positions) const override;
  int64_t bytes_read(int64_t positions, CachePart) const override { return bytes(positions); }

 private:
  int64_t chunk_stride() const;
  float* head_data(int64_t layer, int64_t head) const;

  int64_t width_;       // the head dimension padded to whole inner steps
  Buffer<float> data_;  // [chunk][layer][head]{keys, values}
};

}  // namespace verbatim
