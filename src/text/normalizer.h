#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/pattern.h"

namespace verbatim {

/// One change that a vocabulary makes to a text before anything else.
struct NormalizerStep {
  enum class Kind {
    kNfc,
    kNfd,
    kNfkc,
    kNfkd,
    kReplace,     ///< every match of `pattern` becomes `content`
    kPrepend,     ///< `content` goes before a text that is not empty
    kStripLeft,   ///< white space at the start goes
    kStripRight,  ///< white space at the end goes
  };
  Kind kind = Kind::kNfc;
  Pattern pattern;
  std::string content;
};

using Normalizer = std::vector<NormalizerStep>;

/// `text` (valid UTF-8) after all steps.
std::string normalize(const Normalizer& normalizer, std::string_view text);

}  // namespace verbatim
