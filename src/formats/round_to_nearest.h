#pragma once

#include <span>

namespace verbatim {

/// Rounds one output column uniformly and asymmetrically, to 2^bits values (1 ≤ bits ≤ 16) at equal distances
/// from the smallest to the largest weight, zero among them. Other quantizers are compared with it (RTN;
/// thesis §3.4); no format stores it. `out` has as many elements as `weights`. NaN and infinity count as
/// zero.
void round_to_nearest(std::span<const float> weights, int bits, std::span<float> out);

}  // namespace verbatim
