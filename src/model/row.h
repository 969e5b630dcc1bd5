#pragma once

#include <cstdint>
#include <span>

namespace verbatim {

/// A row: one token at one position of one sequence, to be evaluated. Prefill, decoding, verification and
/// trees of drafts are all lists of rows.
struct Row {
  static constexpr int32_t kPrevious = -1;

  int32_t sequence;  ///< an index into the pass's caches
  int32_t position;
  int32_t token;
  /// The index of the parent, the row that this one follows: an earlier row of the same sequence, one
  /// position before. kPrevious: the row just before this one in the list or, for the first row of a
  /// sequence, the end of the cache.
  int32_t parent = kPrevious;
};

/// Whether row i begins a branch: whether its parent is not the row before it in the list.
inline bool begins_branch(std::span<const Row> rows, size_t i) {
  return rows[i].parent != Row::kPrevious && rows[i].parent != static_cast<int32_t>(i) - 1;
}

}  // namespace verbatim
