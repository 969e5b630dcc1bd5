#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace verbatim::accelerator {

/// A step of speculative decoding.
struct Step {
  int64_t position = 0;  ///< tokens that the sequence has before it, the last one not evaluated yet
  int64_t drafted = 0;
  int64_t accepted = 0;
  int64_t draft_passes = 0;
  int64_t rows = 1;  ///< of the pass that verifies

  bool operator==(const Step&) const = default;
};

/// The steps of a generation.
struct Steps {
  int64_t prompt_tokens = 0;
  std::vector<Step> steps;

  int64_t drafted() const;
  int64_t accepted() const;
  int64_t draft_passes() const;
  /// The tokens that the steps append: of each, those accepted and one more.
  int64_t tokens() const;
};

/// Reads what `verbatim generate --trace FILE` wrote, or what `verbatim generate --json` printed. Of the
/// latter only sums are known, which are spread evenly over the steps. Throws Error(kBadInput), naming
/// `where` and the line, for a trace that is cut off, contradicts itself or is no trace.
Steps parse_steps(std::string_view text, const std::string& where);

/// Makes up steps that draft `draft_length` tokens on average and keep as many as equation 1 says of the
/// acceptance rate, as evenly as whole numbers allow, until `tokens` tokens are appended to a prompt. Throws
/// Error(kBadInput) unless 0 <= draft_length <= 64 and 0 <= acceptance <= 1.
Steps steps_of(double draft_length, double acceptance, int64_t prompt_tokens, int64_t tokens);

}  // namespace verbatim::accelerator
