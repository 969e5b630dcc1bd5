#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/attention.h"

namespace verbatim {

/// The sizes that a cache needs to know of a model.
struct CacheShape {
  int64_t layers = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
};

/// From so many tokens on, what is new in a sequence is a prompt: a step brings 64 drafted ones and one more
/// at most.
inline constexpr int64_t kPromptTokens = 80;

/// How much of what a cache holds a pass reads.
enum class CachePart {
  kWhole,  ///< all of it
  kDraft,  ///< the upper halves of the codes, where there are some; otherwise all
};

/// The keys and values of one sequence. A position may be written again: that is how verification overwrites
/// what drafting left (QSpec §3.1). Memory for `capacity` positions is reserved at once and taken page by
/// page as it is written.
///
/// What a row meets of the past depends on its own position alone, whatever the cache does with older
/// positions as the sequence grows.
class KvCache {
 public:
  virtual ~KvCache() = default;

  /// The positions that may be written.
  int64_t capacity() const { return capacity_; }
  /// Makes room for positions below `positions`, where memory is taken as the sequence grows. False when
  /// there is none.
  virtual bool reserve(int64_t positions) { return positions <= capacity_; }
  /// Positions 0 .. length() - 1 hold what the full reading computed for the sequence's tokens.
  int64_t length() const { return length_; }
  /// Says that this holds for so many positions. What lies after them is free to be written again. A cache
  /// that cannot go back so far is empty afterwards.
  virtual void set_length(int64_t length) { length_ = length; }
  /// The most positions that one pass may write. Drafts may lie ahead of length() by less than
  /// kAttentionChunk.
  virtual int64_t most_rows() const { return capacity_; }

  /// Stores one head's key and value (head_dim floats each) at a position below capacity(). Numbers that are
  /// not finite are stored as ones that are, where they could reach rows that may not see the position.
  /// Several threads may write different heads or positions.
  virtual void write(int64_t layer, int64_t head, int64_t position, const float* key, const float* value) = 0;

  /// Whether settle() has something to do before rows up to `last` attend in a layer.
  virtual bool has_positions_to_encode(int64_t /*layer*/, int64_t /*last*/) const { return false; }
  /// Makes of older positions of a head what rows up to `last` will meet. Heads may be settled by different
  /// threads; settled() ends it for the layer.
  virtual void encode_older_positions(int64_t /*layer*/, int64_t /*head*/, int64_t /*last*/) {}
  virtual void finish_encoding(int64_t /*layer*/, int64_t /*last*/) {}

  virtual HeadCache head(int64_t layer, int64_t head, CachePart part = CachePart::kWhole) const = 0;

  /// The memory that holds the keys and values of positions 0 .. positions - 1, all of it, so that it can be
  /// saved and put back; empty where a cache cannot be saved like that. What it says beyond them means
  /// nothing.
  virtual std::span<std::byte> stored(int64_t /*positions*/) const { return {}; }
  /// Bytes of memory that a sequence of so many positions takes, all layers.
  virtual int64_t bytes(int64_t positions) const = 0;
  /// Bytes that the attention of one row reads when so many positions are visible, all layers.
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
