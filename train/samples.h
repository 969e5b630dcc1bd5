#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace verbatim::train {

/// Which sequences of a text the gradients are taken of.
struct SampleOptions {
  int64_t samples = 100;
  int64_t length = 512;  ///< tokens of a sequence, a beginning-of-sequence token included
  uint64_t seed = 0;
};

/// Chooses sequences at random places of a text, which may overlap. The places depend on the options and on
/// the number of tokens alone. `bos`, if given, is the first token of each. Throws Error(kBadInput), naming
/// `where`, if the text is shorter than a sequence, and Error(kUsage) for sequences of one token.
std::vector<std::vector<int32_t>> choose_samples(std::span<const int32_t> text, std::optional<int32_t> bos,
                                                 const SampleOptions& options, const std::string& where);

}  // namespace verbatim::train
