#pragma once

#include <cstdint>
#include <span>

#include "base/aligned_buffer.h"
#include "kernels/attention.h"

namespace verbatim {

/// The sizes that a cache needs to know of a model.
struct CacheShape {
  int64_t layers = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
};

/// The keys and values of one sequence in BF16, in the panel layout that attention reads
/// (kernels/attention.h). A position may be written again: that is how verification overwrites what drafting
/// left (QSpec §3.1). Memory for `capacity` positions is reserved at once and taken page by page as it is
/// written.
class DenseCache {
 public:
  /// Throws Error(kMachine) when the reservation fails, saying how much it would take.
  DenseCache(const CacheShape& shape, int64_t capacity);

  int64_t capacity() const { return capacity_; }
  /// Positions 0 .. length() - 1 hold what the full reading computed for the sequence's tokens.
  int64_t length() const { return length_; }
  void set_length(int64_t length) { length_ = length; }

  /// Stores one head's key and value (head_dim floats each, rounded to BF16) at a position below capacity().
  /// A value that is no finite number is stored as one, so that it cannot reach rows that may not see the
  /// position.
  void write(int64_t layer, int64_t head, int64_t position, const float* key, const float* value);

  HeadCache head(int64_t layer, int64_t head) const;
  /// The head dimension padded to whole inner steps.
  int64_t width() const { return width_; }
  /// Bytes of keys and values per position, all layers.
  int64_t bytes_per_position() const {
    return shape_.layers * shape_.kv_heads * width_ * 2 * int64_t{sizeof(BFloat16)};
  }

 private:
  BFloat16* head_data(int64_t layer, int64_t head) const;

  CacheShape shape_;
  int64_t width_;
  int64_t capacity_;  // in whole chunks
  int64_t length_ = 0;
  Buffer<BFloat16> data_;  // [layer][head][chunk]{keys, values}
};

}  // namespace verbatim
