#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "verbatim/sampling.h"

namespace verbatim {

/// The last pair of logit and token that all filters keep together. With the tokens in the order of
/// decreasing logit, the smaller token first among equals, every filter keeps a beginning of that order, so
/// the shortest beginning says everything.
struct Cut {
  /// The smallest logit that is kept.
  float logit = -std::numeric_limits<float>::infinity();
  /// The largest token that is kept with exactly that logit.
  int32_t token = std::numeric_limits<int32_t>::max();

  /// Whether the filters keep a token with the given logit.
  bool keeps(float other_logit, int32_t other_token) const {
    return other_logit > logit || (other_logit == logit && other_token <= token);
  }
};

/// A token that a filter looks at.
struct Candidate {
  float logit;
  float weight;  ///< its probability relative to the most likely token
  int32_t token;
};

/// The cut that top-k, top-p and min-p leave, in that order, at options.temperature > 0. `largest` is the
/// largest of the logits and finite. `memory` is room to work in; it allocates only the first time for a
/// vocabulary's size.
Cut find_cut(std::span<const float> logits, float largest, const SamplingOptions& options,
             std::vector<Candidate>& memory);

}  // namespace verbatim
