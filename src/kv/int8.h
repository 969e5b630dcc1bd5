#pragma once

#include "base/aligned_buffer.h"
#include "kv/cache.h"
#include "kv/chunk_codes.h"

namespace verbatim {

/// Keys and values in 8 bits, asymmetric, with a scale and a zero point per position and head. It is the
/// plain way to store 8 bits, for comparison with the hierarchical cache. Rows read every position as codes,
/// their own included.
class Int8Cache : public KvCache {
 public:
  /// Reserves the memory. Throws Error(kMachine), saying how much is needed, if that fails.
  Int8Cache(const CacheShape& shape, int64_t capacity);

  void write(int64_t layer, int64_t head, int64_t position, const float* key, const float* value) override;
  HeadCache head(int64_t layer, int64_t head, CachePart part = CachePart::kWhole) const override;
  int64_t bytes(int64_t positions) const override;
  int64_t bytes_read(int64_t positions, CachePart) const override { return bytes(positions); }

 private:
  CodedLayout layout_;
  Buffer<uint8_t> records_;  // [chunk][layer][head]
};

}  // namespace verbatim
