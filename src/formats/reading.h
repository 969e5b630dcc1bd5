#pragma once

#include <string>
#include <string_view>

namespace verbatim {

/// A way to use stored weights: which bits are read, and in which precision activations meet them.
enum class Reading {
  kFull,  ///< the weights as the checkpoint has them; BF16 weights meet BF16 activations, F16 and F32 meet
          ///< F32
  kMxfp4W4A16,  ///< MXFP4 weights, BF16 activations
  kMxfp4W4A8,   ///< MXFP4 weights, int8 activations in groups of 32
};

/// "full", "mxfp4-w4a16" or "mxfp4-w4a8".
std::string_view reading_name(Reading reading);

/// The inverse. Throws Error(kBadInput), naming `where`, for any other name.
Reading parse_reading(std::string_view name, std::string_view where);

}  // namespace verbatim
