#pragma once

#include <span>

namespace verbatim {

/// Uniform asymmetric rounding of one output column, what other quantizers are measured against (RTN; thesis
/// §3.4): 2^bits values at equal distances from the smallest to the largest weight, zero among them. `out`
/// gets the rounded weights, as many as there are. NaN and infinity count as zero. For comparisons only: no
/// format stores it. 1 ≤ bits ≤ 16.
void round_to_nearest(std::span<const float> weights, int bits, std::span<float> out);

}  // namespace verbatim
