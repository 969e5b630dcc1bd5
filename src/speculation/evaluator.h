#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "speculation/drafter.h"
#include "speculation/pass_runner.h"

namespace verbatim {

/// What it takes to evaluate tokens of one sequence with one model.
class Evaluator {
 public:
  explicit Evaluator(std::unique_ptr<PassRunner> runner) : runner_(std::move(runner)) {}
  /// Runs every pass by itself. Both outlive the evaluator.
  Evaluator(const Decoder& decoder, ThreadTeam& team)
      : runner_(std::make_unique<SingleRunner>(decoder, team)) {}

  /// Evaluates tokens[first ..] at their positions in one pass and returns the logits of the last
  /// `logits_count` of them, valid until the next call.
  Matrix<const float> evaluate(std::span<const int32_t> tokens, int64_t first, int64_t logits_count,
                               const PassKind& kind, KvCache& cache);

  /// Likewise tokens[first ..] and the nodes of a draft that follows them. Returns the logits of the last
  /// token, in row 0, and of the nodes, in row row_of(node).
  Matrix<const float> evaluate(std::span<const int32_t> tokens, int64_t first, const Draft& draft,
                               const PassKind& kind, KvCache& cache);
  /// A node's row in the logits; 0 for DraftNode::kRoot.
  int64_t row_of(int32_t node) const {
    return node == DraftNode::kRoot ? 0 : row_of_[static_cast<size_t>(node)] - root_row_;
  }
  /// Makes the cache hold the path to this node. Its length is left to the caller.
  void keep(int32_t node, KvCache& cache);

  const Decoder& decoder() const { return runner_->decoder(); }
  int threads() const { return runner_->threads(); }
  PassRunner& runner() { return *runner_; }

 private:
  void set_rows(std::span<const int32_t> tokens, int64_t first);
  void add_nodes(const Draft& draft, int32_t root_position);

  std::unique_ptr<PassRunner> runner_;
  std::vector<Row> rows_;
  int64_t root_row_ = 0;
  std::vector<int32_t> row_of_;        // by node
  std::vector<int32_t> first_child_;   // by node; -1: none
  std::vector<int32_t> next_sibling_;  // by node; -1: none
  std::vector<int32_t> pending_;       // heads of branches that have no row yet
};

}  // namespace verbatim
