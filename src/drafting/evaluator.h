#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "drafting/drafter.h"
#include "drafting/pass_runner.h"

namespace verbatim {

/// Evaluates tokens of one sequence with one model: makes the rows of a pass from tokens and a draft, and
/// knows which row of logits belongs to which node.
class Evaluator {
 public:
  explicit Evaluator(std::unique_ptr<PassRunner> runner) : runner_(std::move(runner)) {}
  /// Makes an evaluator that runs every pass by itself. `decoder` and `team` outlive it.
  Evaluator(const Decoder& decoder, ThreadTeam& team)
      : runner_(std::make_unique<SingleRunner>(decoder, team)) {}

  /// Evaluates tokens[first ..] at their positions in one pass and returns the logits of the last
  /// `logits_count` of them, valid until the next call.
  Matrix<const float> evaluate(std::span<const int32_t> tokens, int64_t first, int64_t logits_count,
                               const PassKind& kind, KvCache& cache);

  /// Evaluates tokens[first ..] and the nodes of a draft that follows them in one pass. Returns the logits of
  /// the last token in row 0 and those of a node in row row_of(node), valid until the next call.
  Matrix<const float> evaluate(std::span<const int32_t> tokens, int64_t first, const Draft& draft,
                               const PassKind& kind, KvCache& cache);
  /// Evaluates tokens[first ..] and a draft as evaluate() does, but leaves out the last of the nodes
  /// where the batch gains more without their rows, and takes them out of the draft. The nodes are in
  /// descending order of their path probabilities; the first `certain` stay.
  Matrix<const float> evaluate_worthwhile(std::span<const int32_t> tokens, int64_t first, int64_t certain,
                                          Draft& draft, const PassKind& kind, KvCache& cache);
  /// The row of the logits that belongs to a node; 0 for DraftNode::kRoot.
  int64_t row_of(int32_t node) const {
    return node == DraftNode::kRoot ? 0 : row_of_[static_cast<size_t>(node)] - root_row_;
  }
  /// Makes the cache hold the path from the root to `node` behind the tokens. The caller sets the cache's
  /// length.
  void keep(int32_t node, KvCache& cache);

  const Decoder& decoder() const { return runner_->decoder(); }
  int threads() const { return runner_->threads(); }
  PassRunner& runner() { return *runner_; }

 private:
  void set_rows(std::span<const int32_t> tokens, int64_t first);
  void set_tree(std::span<const int32_t> tokens, int64_t first, const Draft& draft);
  void add_nodes(const Draft& draft, int32_t root_position);

  std::unique_ptr<PassRunner> runner_;
  std::vector<Row> rows_;
  int64_t root_row_ = 0;
  std::vector<int32_t> row_of_;        // by node
  std::vector<int32_t> first_child_;   // by node; -1: none
  std::vector<int32_t> next_sibling_;  // by node; -1: none
  std::vector<float> paths_;           // of the nodes that may be left out
  std::vector<int32_t> pending_;       // heads of branches that have no row yet
};

}  // namespace verbatim
