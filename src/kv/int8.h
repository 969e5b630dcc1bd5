#pragma once

#include "base/aligned_buffer.h"
#include "kv/cache.h"
#include "kv/chunk_codes.h"

namespace verbatim {

/// Keys and values in 8 bits, asymmetric, with a scale and a zero point per position and head: the plain way,
/// to compare the hierarchical cache with. Every position is met as codes, a row's own included.
class Int8Cache : public KvCache {
 public:
  /// Throws Error(kMachine) when the reservation fails, saying how much it would take.
  Int8Cache(const CacheShape& shape, int64_t capacity);

  void write(int64_t layer, int64_t head, int64_t position, const float* key, const float* value) override;
  HeadCache head(int64_t layer, int64_t head, CachePart part = CachePart::kWhole) const override;
  int64_t bytes(int64_t positions) const override;
  int64_t bytes_read(int64_t positions, CachePart) const override { return bytes(positions); }

 private:
  CodedLayout layout_;
  Buffer<uint8_t> records_;  // [chunk][layer][head]: what is written lies together
};

}  // namespace verbatim
