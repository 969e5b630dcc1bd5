#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "kv/cache.h"
#include "model/row.h"

namespace verbatim {

/// Rows first .. first + count - 1, each of which follows the one before it.
struct Chain {
  int64_t first;
  int64_t count;
};

/// The rows of one sequence in a pass: a trunk, which continues what the cache holds, and branches off it and
/// off each other. Only the trunk has its keys and values in the cache for good. A branch borrows the slots
/// of its positions while its rows attend: so every row meets its past where plain decoding would have it, in
/// the same chunks and the same order, and gets the same bits.
class Branches {
 public:
  /// Describes rows of a pass, all of one sequence, with `columns` keys and as many values each. Throws
  /// Error(kUsage) for a row that does not follow its parent.
  void plan(std::span<const Row> rows, int64_t first, int64_t end, int64_t layers, int64_t columns);

  bool contains(int64_t row) const {
    return chains_.size() > 1 && row >= chains_.front().first && row < end_;
  }
  bool on_trunk(int64_t row) const { return row < chains_.front().first + chains_.front().count; }
  /// The trunk first; in the order of the rows.
  std::span<const Chain> chains() const { return chains_; }

  /// Where a row's keys and values are kept: `columns` floats each, heads side by side.
  float* keys(int64_t layer, int64_t row) {
    return kept_.data() +
           (layer * (end_ - chains_.front().first) + row - chains_.front().first) * 2 * columns_;
  }
  float* values(int64_t layer, int64_t row) { return keys(layer, row) + columns_; }

  /// Puts the keys and values of a branch, and of the branches it grew from, into the slots of their
  /// positions.
  void enter(const Chain& branch, int64_t layer, int64_t head, int64_t head_dim, KvCache& cache);
  /// Gives the slots back to the trunk.
  void leave(const Chain& branch, int64_t layer, int64_t head, int64_t head_dim, KvCache& cache);

  /// Makes the path that ends in row `last` the one that the cache holds, in all layers of the pass. Its
  /// length is left to the caller.
  void keep(int64_t last, int64_t heads, int64_t head_dim, KvCache& cache);

 private:
  struct Node {
    int32_t position;
    int32_t parent;  // a row of the pass; -1 for the first
  };
  const Node& node(int64_t row) const { return nodes_[static_cast<size_t>(row - chains_.front().first)]; }
  void write(int64_t row, int64_t layer, int64_t head, int64_t head_dim, KvCache& cache);

  std::vector<Chain> chains_;
  std::vector<Node> nodes_;
  Buffer<float> kept_;  // [layer][row]{keys, values}
  int64_t columns_ = 0;
  int64_t layers_ = 0;
  int64_t end_ = 0;
};

}  // namespace verbatim
