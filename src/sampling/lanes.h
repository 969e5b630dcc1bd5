#pragma once

#include <cstdint>
#include <cstring>

namespace verbatim {

/// Four numbers that one instruction of any supported machine handles, in the vector notation of GCC and
/// Clang: arithmetic and comparisons work lane by lane, and `mask ? a : b` chooses by lane.
using FloatLanes [[gnu::vector_size(16)]] = float;
using WordLanes [[gnu::vector_size(16)]] = uint32_t;
using MaskLanes [[gnu::vector_size(16)]] = int32_t;  // all bits of a lane, or none
constexpr size_t kLaneCount = 4;

inline FloatLanes load_lanes(const float* from) {
  FloatLanes lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

inline FloatLanes all_lanes(float value) {
  return FloatLanes{value, value, value, value};
}

inline bool any_lane(MaskLanes mask) {
  return ((mask[0] | mask[1]) | (mask[2] | mask[3])) != 0;
}

}  // namespace verbatim
