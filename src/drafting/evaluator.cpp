#include "drafting/evaluator.h"

namespace verbatim {

void Evaluator::set_rows(std::span<const int32_t> tokens, int64_t first) {
  rows_.clear();
  for (auto i = static_cast<size_t>(first); i < tokens.size(); ++i) {
    rows_.push_back({0, static_cast<int32_t>(i), tokens[i]});
  }
}

Matrix<const float> Evaluator::evaluate(std::span<const int32_t> tokens, int64_t first, int64_t logits_count,
                                        const PassKind& kind, KvCache& cache) {
  set_rows(tokens, first);
  return runner_->run(rows_, kind, cache, std::ssize(rows_) - logits_count);
}

/// Puts nodes chain by chain: each with its first child after it, so that the trunk follows the root.
void Evaluator::add_nodes(const Draft& draft, int32_t root_position) {
  const size_t count = draft.nodes.size();
  row_of_.assign(count, 0);
  first_child_.assign(count, -1);
  next_sibling_.assign(count, -1);
  int32_t first_of_root = -1;
  for (size_t i = count; i-- > 0;) {
    const int32_t parent = draft.nodes[i].parent;
    int32_t& head = parent == DraftNode::kRoot ? first_of_root : first_child_[static_cast<size_t>(parent)];
    next_sibling_[i] = head;
    head = static_cast<int32_t>(i);
  }
  pending_.clear();
  if (first_of_root >= 0) pending_.push_back(first_of_root);
  while (!pending_.empty()) {
    int32_t node = pending_.back();
    pending_.pop_back();
    while (node >= 0) {
      const DraftNode& drafted = draft.nodes[static_cast<size_t>(node)];
      if (next_sibling_[static_cast<size_t>(node)] >= 0)
        pending_.push_back(next_sibling_[static_cast<size_t>(node)]);
      const int32_t parent_row = drafted.parent == DraftNode::kRoot
                                     ? static_cast<int32_t>(root_row_)
                                     : row_of_[static_cast<size_t>(drafted.parent)];
      row_of_[static_cast<size_t>(node)] = static_cast<int32_t>(rows_.size());
      rows_.push_back({0, root_position + 1 + drafted.depth, drafted.token, parent_row});
      node = first_child_[static_cast<size_t>(node)];
    }
  }
}

void Evaluator::set_tree(std::span<const int32_t> tokens, int64_t first, const Draft& draft) {
  set_rows(tokens, first);
  root_row_ = static_cast<int64_t>(rows_.size()) - 1;
  add_nodes(draft, static_cast<int32_t>(tokens.size()) - 1);
}

Matrix<const float> Evaluator::evaluate(std::span<const int32_t> tokens, int64_t first, const Draft& draft,
                                        const PassKind& kind, KvCache& cache) {
  set_tree(tokens, first, draft);
  return runner_->run(rows_, kind, cache, root_row_);
}

Matrix<const float> Evaluator::evaluate_worthwhile(std::span<const int32_t> tokens, int64_t first,
                                                   int64_t certain, Draft& draft, const PassKind& kind,
                                                   KvCache& cache) {
  set_tree(tokens, first, draft);
  paths_.clear();
  for (const DraftNode& node : std::span(draft.nodes).subspan(static_cast<size_t>(certain))) {
    paths_.push_back(node.path);
  }
  const auto keep = [&](int64_t count) -> std::span<const Row> {
    draft.nodes.resize(static_cast<size_t>(certain + count));
    set_tree(tokens, first, draft);
    return rows_;
  };
  runner_->offer({.paths = paths_, .keep = keep});
  return runner_->run(rows_, kind, cache, root_row_);
}

void Evaluator::keep(int32_t node, KvCache& cache) {
  if (node != DraftNode::kRoot) runner_->keep_path(row_of_[static_cast<size_t>(node)], cache);
}

}  // namespace verbatim
