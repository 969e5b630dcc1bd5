#include "model/branches.h"

#include "base/error.h"

namespace verbatim {

void Branches::plan(std::span<const Row> rows, int64_t first, int64_t end, int64_t layers, int64_t columns) {
  chains_.clear();
  nodes_.clear();
  columns_ = columns;
  layers_ = layers;
  end_ = end;
  for (int64_t r = first; r < end; ++r) {
    const Row& row = rows[static_cast<size_t>(r)];
    const bool branch = begins_branch(rows, static_cast<size_t>(r));
    const int64_t parent = branch ? row.parent : r - 1;
    if (r == first ? branch : parent < first || parent >= r) {
      fail(ErrorKind::kUsage, "row {} of a pass follows row {}, which is not before it in its sequence", r,
           parent);
    }
    if (r > first && row.position != rows[static_cast<size_t>(parent)].position + 1) {
      fail(ErrorKind::kUsage, "row {} of a pass is at position {}, after one at position {}", r, row.position,
           rows[static_cast<size_t>(parent)].position);
    }
    if (r == first || branch) chains_.push_back({r, 0});
    ++chains_.back().count;
    nodes_.push_back({row.position, static_cast<int32_t>(r == first ? -1 : parent)});
  }
  if (chains_.size() > 1) kept_.reserve(static_cast<size_t>(layers * (end - first) * 2 * columns));
}

void Branches::write(int64_t row, int64_t layer, int64_t head, int64_t head_dim, KvCache& cache) {
  cache.write(layer, head, node(row).position, keys(layer, row) + head * head_dim,
              values(layer, row) + head * head_dim);
}

void Branches::enter(const Chain& branch, int64_t layer, int64_t head, int64_t head_dim, KvCache& cache) {
  for (int64_t row = branch.first + branch.count - 1; !on_trunk(row); row = node(row).parent) {
    write(row, layer, head, head_dim, cache);
  }
}

void Branches::leave(const Chain& branch, int64_t layer, int64_t head, int64_t head_dim, KvCache& cache) {
  const Chain& trunk = chains_.front();
  const int64_t root = node(trunk.first).position;
  for (int64_t row = branch.first + branch.count - 1; !on_trunk(row); row = node(row).parent) {
    const int64_t owner = trunk.first + node(row).position - root;
    if (on_trunk(owner)) write(owner, layer, head, head_dim, cache);
  }
}

void Branches::keep(int64_t last, int64_t heads, int64_t head_dim, KvCache& cache) {
  for (int64_t row = last; !on_trunk(row); row = node(row).parent) {
    for (int64_t layer = 0; layer < layers_; ++layer) {
      for (int64_t head = 0; head < heads; ++head) write(row, layer, head, head_dim, cache);
    }
  }
}

}  // namespace verbatim
