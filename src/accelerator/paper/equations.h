#pragma once

namespace verbatim::accelerator {

/// Tokens that a step appends on average, equation 1 of SPEQ: (1 - r^(L + 1)) / (1 - r).
double accept_length(double draft_length, double acceptance);

/// The speedup over plain decoding, equation 2 of SPEQ before its approximation: La / (L Td/Tar + Tv/Tar).
double speedup(double draft_length, double acceptance, double draft_time, double verify_time);

}  // namespace verbatim::accelerator
