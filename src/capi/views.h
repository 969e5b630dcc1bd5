#pragma once

#include <vector>

#include "verbatim/verbatim.h"
#include "verbatim/verbatim_c.h"

namespace verbatim::capi {

/// Log-probabilities as C sees them. The view points into itself: it can be moved, but not copied.
class LogprobsView {
 public:
  LogprobsView() = default;
  explicit LogprobsView(const std::vector<ScoredToken>& tokens);
  LogprobsView(LogprobsView&&) = default;
  LogprobsView& operator=(LogprobsView&&) = default;

  /// Null where there are none.
  const verbatim_scored_token* data() const { return scored_.empty() ? nullptr : scored_.data(); }
  size_t size() const { return scored_.size(); }

 private:
  std::vector<verbatim_token_logprob> top_;  // of all tokens, one after the other
  std::vector<verbatim_scored_token> scored_;
};

/// A piece of an answer, kept until the next one.
class PieceView {
 public:
  PieceView() = default;
  explicit PieceView(TokenStream::Piece&& piece);

  /// The piece as C sees it, valid as long as this view is not assigned to.
  verbatim_piece shown() const;

 private:
  TokenStream::Piece piece_;
  LogprobsView logprobs_;
};

/// What C sees of statistics.
verbatim_stats stats_of(const Stats& stats);
verbatim_engine_stats stats_of(const EngineStats& stats);

}  // namespace verbatim::capi
