#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "kv/cache.h"
#include "model/row.h"

namespace verbatim {

/// A chain of rows: rows first .. first + count - 1, each of which follows the row before it.
struct Chain {
  int64_t first;
  int64_t count;
};

/// The rows of one sequence in a pass as a tree: the trunk, which continues the cache, and branches, which
/// leave the trunk or another branch. The cache keeps the keys and values of the trunk alone. A branch
/// borrows the slots of its positions while its rows attend. So every row finds the keys and values before it
/// in the slots where plain decoding would have them, in the same chunks and the same order, and gets the
/// same bits.
class Branches {
 public:
  /// Sets the tree to rows first .. end - 1 of a pass, all of one sequence. Each row has `columns` numbers of
  /// keys and as many of values in a layer. Throws Error(kUsage) if a row does not follow its parent.
  void plan(std::span<const Row> rows, int64_t first, int64_t end, int64_t layers, int64_t columns);

  /// Whether a row of the pass belongs to this tree. A tree without branches has none.
  bool contains(int64_t row) const {
    return chains_.size() > 1 && row >= chains_.front().first && row < end_;
  }
  /// Whether a row of this tree belongs to the trunk.
  bool on_trunk(int64_t row) const { return row < chains_.front().first + chains_.front().count; }
  /// The trunk and the branches, in the order of their rows.
  std::span<const Chain> chains() const { return chains_; }

  /// The keys of a row in a layer, kept beside the cache: `columns` floats, heads side by side.
  float* keys(int64_t layer, int64_t row) {
    return kept_.data() +
           (layer * (end_ - chains_.front().first) + row - chains_.front().first) * 2 * columns_;
  }
  /// The values of a row in a layer, kept beside the cache: `columns` floats, heads side by side.
  float* values(int64_t layer, int64_t row) { return keys(layer, row) + columns_; }

  /// Writes the keys and values of a branch, and of the branches that lead to it, into the slots of their
  /// positions.
  void enter(const Chain& branch, int64_t layer, int64_t head, int64_t head_dim, KvCache& cache);
  /// Writes the trunk's keys and values back into the slots that a branch borrowed.
  void leave(const Chain& branch, int64_t layer, int64_t head, int64_t head_dim, KvCache& cache);

  /// Makes the cache hold the path that ends in row `last`, in all layers of the pass. The caller sets the
  /// cache's length.
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
