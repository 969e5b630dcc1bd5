#pragma once

#include <vector>

#include "kv/chunk_codes.h"
#include "kv/dense.h"
#include "verbatim/cache.h"

namespace verbatim {

/// QuantSpec's cache (§4.2, §4.3): the latest positions in BF16, older ones as codes of two 4-bit halves.
/// Keys have a scale per channel over a group of positions, values per position over a group of channels. The
/// upper halves alone are the draft's reading; both together, eight bits, are the full one, so drafting needs
/// no copy.
///
/// The buffer moves with the position that looks, not with the step: a row at position p meets as codes the
/// positions below (floor((p + 1) / h) - 1) · h, where h is half the buffer, and in full precision those from
/// there on, at least h and less than 2 h with its own (§4.3.2: C_F1 is always full). What drafts write is in
/// full precision until long after it is verified, so nothing is ever encoded twice.
class HierarchicalCache : public KvCache {
 public:
  /// Throws Error(kMachine) when the reservation fails.
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
  int64_t flush_;                 // as CodedChunks::flush
  int64_t chunks_;                // of the capacity
  DenseCache recent_;             // a ring of chunks
  Buffer<uint8_t> records_;       // [chunk][layer][head]: what is written lies together
  Buffer<uint8_t> lower_;         // likewise; empty with four bits
  Buffer<float> staging_;         // [head]{keys, values} of a chunk
  std::vector<int64_t> encoded_;  // by layer: the chunks that are
  int64_t written_ = 0;           // the chunks that have been written to, the last one's index plus one
};

}  // namespace verbatim
