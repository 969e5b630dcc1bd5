#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "attention/attention.h"

namespace verbatim {

/// The sizes of a model that decide the layout of its caches.
struct CacheShape {
  int64_t layers = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
};

/// The number of new tokens from which on a sequence is taken to have got a prompt: a decoding step appends
/// 65 at most, 64 drafted ones and one more.
inline constexpr int64_t kPromptTokens = 80;

/// The part of a cache's stored bits that a pass reads.
enum class CachePart {
  kWhole,  ///< all bits
  kDraft,  ///< of codes in two halves the upper half alone; of all else, all bits
};

/// The keys and values of one sequence. A position may be written again: verification overwrites the keys and
/// values that drafting wrote (QSpec §3.1). Memory for `capacity` positions is reserved at once, and physical
/// memory is taken as it is written.
///
/// A cache may replace the numbers of older positions by codes as the sequence grows. Whether a row reads a
/// position as numbers or as codes must depend on the row's own position alone.
class KvCache {
 public:
  virtual ~KvCache() = default;

  /// The number of positions that may be written.
  int64_t capacity() const { return capacity_; }
  /// Makes room for positions below `positions`, in caches that take memory as the sequence grows. Returns
  /// false if there is no memory.
  virtual bool reserve(int64_t positions) { return positions <= capacity_; }
  /// The number of verified positions: positions 0 .. length() - 1 hold the keys and values that the
  /// verifying reading computed for the sequence's tokens.
  int64_t length() const { return length_; }
  /// Sets length(). Later positions may then be written again. A cache that cannot go back to a length
  /// becomes empty.
  virtual void set_length(int64_t length) { length_ = length; }
  /// The largest number of positions that one pass may write. Drafts must lie less than kAttentionChunk
  /// positions ahead of length().
  virtual int64_t most_rows() const { return capacity_; }

  /// Stores one head's key and value (head_dim floats each) at a position below capacity(). NaN and infinity
  /// are replaced by finite numbers where they could affect rows that may not see the position. Several
  /// threads may write different heads or positions at once.
  virtual void write(int64_t layer, int64_t head, int64_t position, const float* key, const float* value) = 0;

  /// Whether attention reads this cache with queries in F32 (AttentionBlock::f32_queries) rather than in
  /// BF16.
  virtual bool reads_f32_queries() const { return false; }

  /// Whether positions of a layer must be encoded before rows at positions up to `last` attend to it.
  virtual bool has_positions_to_encode(int64_t /*layer*/, int64_t /*last*/) const { return false; }
  /// Encodes the older positions of one head that rows at positions up to `last` read as codes. Different
  /// threads may encode different heads at once. Must be followed by finish_encoding() for the layer.
  virtual void encode_older_positions(int64_t /*layer*/, int64_t /*head*/, int64_t /*last*/) {}
  /// Ends the encoding of a layer, after encode_older_positions() for all of its heads.
  virtual void finish_encoding(int64_t /*layer*/, int64_t /*last*/) {}

  /// The keys and values of one head, as attention reads them.
  virtual HeadCache head(int64_t layer, int64_t head, CachePart part = CachePart::kWhole) const = 0;

  /// The memory that holds the keys and values of positions 0 .. positions - 1, so that a session can save it
  /// and put it back; empty for a cache that cannot be saved in this way. Bytes of later positions in it mean
  /// nothing.
  virtual std::span<std::byte> stored(int64_t /*positions*/) const { return {}; }
  /// The bytes of memory that a sequence of `positions` positions takes, in all layers together.
  virtual int64_t bytes(int64_t positions) const = 0;
  /// The bytes that the attention of one row reads if it sees `positions` positions, in all layers together.
  virtual int64_t bytes_read(int64_t positions, CachePart part) const = 0;

 protected:
  KvCache(const CacheShape& shape, int64_t capacity) : shape_(shape), capacity_(capacity) {}
  KvCache(KvCache&&) = default;
  KvCache& operator=(KvCache&&) = default;

  CacheShape shape_;
  int64_t capacity_;
  int64_t length_ = 0;
};

}  // namespace verbatim
