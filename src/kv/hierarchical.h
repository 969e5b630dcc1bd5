#pragma once

#include <vector>

#include "kv/chunk_codes.h"
#include "kv/dense.h"
#include "verbatim/cache.h"

namespace verbatim {

/// QuantSpec's cache (§4.2, §4.3): the latest positions in BF16, older ones as codes of two 4-bit halves.
/// Keys have a scale per channel over a group of positions, values per position over a group of channels.
/// Drafts read the upper halves alone, verification reads both, which together are eight bits. So drafting
/// needs no copy.
///
/// The boundary between codes and BF16 depends on the row, not on the step. With h as half the buffer, a row
/// at position p reads positions below (floor((p + 1) / h) - 1) · h as codes and all later ones in BF16;
/// those are at least h and less than 2 h, its own included (§4.3.2: C_F1 is always full). Positions that
/// drafts wrote stay in BF16 until long after they are verified, so no position is encoded twice.
class HierarchicalCache : public KvCache {
 public:
  /// Reserves the memory. Throws Error(kMachine) if that fails.
  HierarchicalCache(const CacheShape& shape, int64_t capacity, const CacheOptions& options);

  void set_length(int64_t length) override;
  int64_t most_rows() const override;
  void write(int64_t layer, int64_t head, int64_t position, const float* key, const float* value) override;
  bool has_positions_to_encode(int64_t layer, int64_t last) const override;
  void encode_older_positions(int64_t layer, int64_t head, int64_t last) override;
  void finish_encoding(int64_t layer, int64_t last) override;
  HeadCache head(int64_t layer, int64_t head, CachePart part = CachePart::kWhole) const override;
  int64_t bytes(int64_t positions) const override;
  int64_t bytes_read(int64_t positions, CachePart part) const override;

 private:
  CodedChunks chunks(int64_t layer, int64_t head) const;
  int64_t ring() const { return recent_.capacity() / kAttentionChunk; }

  CodedLayout layout_;
  int64_t flush_;                 // see CodedChunks::flush
  int64_t chunks_;                // the number of chunks of the capacity
  DenseCache recent_;             // the latest positions: a ring of chunks
  Buffer<uint8_t> records_;       // [chunk][layer][head]
  Buffer<uint8_t> lower_;         // [chunk][layer][head]: the lower halves; empty if codes have four bits
  Buffer<float> staging_;         // [head]{keys, values} of the chunk that is being encoded
  std::vector<int64_t> encoded_;  // by layer: the number of encoded chunks
  int64_t written_ = 0;           // the number of chunks that have been written to
};

}  // namespace verbatim
