#pragma once

#include <cstdint>
#include <span>

namespace verbatim {

// The rejection rule of Leviathan et al. ("Fast Inference from Transformers via Speculative Decoding",
// §2.3): a token drawn from the draft's distribution q is kept with probability min(1, p / q); where it is
// not, another is drawn from max(0, p - q). Together they draw from p exactly, whatever q is.
//
// The random numbers belong to seed and position. They are independent of the sampler's noise, with which
// the draft was drawn, and of each other.

/// Whether a drafted token stays that has probability `p` under the model and `q` > 0 under the draft.
bool keep_draft(float p, float q, uint64_t seed, int64_t position);

/// The token that replaces a rejected one, drawn from max(0, p - q), normalised. `p` and `q` are
/// probabilities by token; what `q` is too short for has probability 0 there. Where rounding leaves nothing
/// of the difference, draws from p. Throws Error(kUsage) when p is 0 everywhere.
int32_t sample_residual(std::span<const float> p, std::span<const float> q, uint64_t seed, int64_t position);

}  // namespace verbatim
