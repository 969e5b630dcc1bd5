#include "capi/views.h"

#include <utility>

namespace verbatim::capi {

LogprobsView::LogprobsView(const std::vector<ScoredToken>& tokens) {
  size_t tops = 0;
  for (const ScoredToken& each : tokens) tops += each.top.size();
  top_.reserve(tops);
  scored_.reserve(tokens.size());
  for (const ScoredToken& each : tokens) {
    // The vector has its room already, so that its elements stay where they are.
    const verbatim_token_logprob* const top = top_.data() + top_.size();
    for (const TokenLogprob& likely : each.top) top_.push_back({likely.token, likely.logprob});
    scored_.push_back({each.token, each.logprob, each.top.empty() ? nullptr : top, each.top.size()});
  }
}

PieceView::PieceView(TokenStream::Piece&& piece) : piece_(std::move(piece)), logprobs_(piece_.logprobs) {}

verbatim_piece PieceView::shown() const {
  return {piece_.text.c_str(), piece_.text.size(), piece_.tokens.data(), piece_.tokens.size(),
          logprobs_.data()};
}

verbatim_stats stats_of(const Stats& stats) {
  verbatim_stats shown = {};
  shown.prompt_tokens = stats.prompt_tokens;
  shown.generated_tokens = stats.generated_tokens;
  shown.drafted = stats.drafted;
  shown.accepted = stats.accepted;
  shown.target_passes = stats.target_passes;
  shown.draft_passes = stats.draft_passes;
  shown.seconds_prefill = stats.seconds_prefill;
  shown.seconds_decode = stats.seconds_decode;
  shown.seconds_draft = stats.seconds_draft;
  shown.seconds_verify = stats.seconds_verify;
  shown.tokens_per_second = stats.tokens_per_second();
  switch (stats.finish) {
    case FinishReason::kLength:
      shown.finish = VERBATIM_FINISH_LENGTH;
      break;
    case FinishReason::kEndOfSequence:
      shown.finish = VERBATIM_FINISH_EOS;
      break;
    case FinishReason::kStopString:
      shown.finish = VERBATIM_FINISH_STOP;
      break;
    case FinishReason::kContext:
      shown.finish = VERBATIM_FINISH_CONTEXT;
      break;
    case FinishReason::kCancelled:
      shown.finish = VERBATIM_FINISH_CANCELLED;
      break;
    case FinishReason::kDeadline:
      shown.finish = VERBATIM_FINISH_DEADLINE;
      break;
  }
  return shown;
}

verbatim_engine_stats stats_of(const EngineStats& stats) {
  verbatim_engine_stats shown = {};
  shown.waiting = stats.waiting;
  shown.running = stats.running;
  shown.finished = stats.finished;
  shown.preemptions = stats.preemptions;
  shown.passes = stats.whole_model.count;
  shown.rows = stats.whole_model.rows;
  shown.seconds = stats.whole_model.seconds;
  shown.prompt_tokens_remembered = stats.prompt_tokens_remembered;
  shown.cache_bytes = stats.cache_bytes;
  shown.cache_bytes_taken = stats.cache_bytes_taken;
  return shown;
}

}  // namespace verbatim::capi
