#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/pattern.h"

namespace verbatim {

/// One step of normalization, which changes a text before it is encoded.
struct NormalizerStep {
  enum class Kind {
    kNfc,
    kNfd,
    kNfkc,
    kNfkd,
    kReplace,     ///< every match of `pattern` becomes `content`
    kPrepend,     ///< `content` goes before a text that is not empty
    kStripLeft,   ///< white space at the start is removed
    kStripRight,  ///< white space at the end is removed
  };
  Kind kind = Kind::kNfc;
  Pattern pattern;
  std::string content;
};

using Normalizer = std::vector<NormalizerStep>;

/// Applies all steps to `text` (valid UTF-8).
std::string normalize(const Normalizer& normalizer, std::string_view text);

}  // namespace verbatim
