#pragma once

#include <array>
#include <cstdint>

#include "base/philox.h"

namespace verbatim {

/// The place of a random number: the seed of a generation and the position of a token in its sequence. The
/// same seed, position and index always give the same noise.
struct NoisePlace {
  uint64_t seed;
  int64_t position;
};

/// The use of random numbers. Its value is the last 32 bits of the generator's counter, so that no two uses
/// share a number.
enum class NoiseDomain : uint32_t {
  kGumbel = 0x47554d42,    ///< which token is chosen
  kKeep = 0x4b454550,      ///< whether the rejection rule keeps a draft
  kResidual = 0x52455349,  ///< which token the rejection rule takes instead of a rejected one
};

/// Four random numbers of 32 bits for one use and place.
inline std::array<uint32_t, 4> noise_words(NoiseDomain domain, NoisePlace place, uint32_t index) {
  const auto position = static_cast<uint64_t>(place.position);
  return philox({index, static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32),
                 static_cast<uint32_t>(domain)},
                {static_cast<uint32_t>(place.seed), static_cast<uint32_t>(place.seed >> 32)});
}

}  // namespace verbatim
