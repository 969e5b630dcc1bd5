#include <algorithm>

#include "verbatim/generate.h"

namespace verbatim {

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kLength:
      return "length";
    case FinishReason::kEndOfSequence:
      return "eos";
    case FinishReason::kStopString:
      return "stop";
    case FinishReason::kContext:
      return "context";
    case FinishReason::kDeadline:
      return "deadline";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

std::string_view origin_name(TokenOrigin::Kind kind) {
  switch (kind) {
    case TokenOrigin::Kind::kPlain:
      return "plain";
    case TokenOrigin::Kind::kDrafted:
      return "drafted";
    case TokenOrigin::Kind::kCorrected:
      return "corrected";
  }
  return "unknown";
}

double Stats::acceptance_rate() const {
  return drafted == 0 ? 0.0 : static_cast<double>(accepted) / static_cast<double>(drafted);
}

double Stats::mean_accepted_length() const {
  if (target_passes == 0) return 0.0;
  return static_cast<double>(accepted + target_passes) / static_cast<double>(target_passes);
}

double Stats::planning_percent() const {
  return seconds_decode > 0 ? 100.0 * seconds_planning / seconds_decode : 0.0;
}

double Stats::seconds_overhead() const {
  const double known = seconds_draft + seconds_verify + seconds_sampling + seconds_planning;
  return std::max(0.0, seconds_decode - known);
}

double Stats::tokens_per_second() const {
  return generated_tokens > 1 && seconds_decode > 0
             ? static_cast<double>(generated_tokens - 1) / seconds_decode
             : 0.0;
}

}  // namespace verbatim
