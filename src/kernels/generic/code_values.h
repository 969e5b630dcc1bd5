#pragma once

#include <cstdint>

namespace verbatim::generic {

/// Twice the values of E2M1, by code.
inline constexpr int8_t kDoubledE2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// Twice the values of BSFP's drafts, by code (formats/bsfp.h).
inline constexpr int8_t kDoubledBsfp[16] = {2, 0, 8, 0, 1, 4, 16, 64, -2, 0, -8, 0, -1, -4, -16, -64};

}  // namespace verbatim::generic
