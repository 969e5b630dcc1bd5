#pragma once

#include <string>
#include <string_view>

#include "structure/node.h"

namespace verbatim {

/// What a pattern stands for.
enum class PatternUse {
  kWholeText,        ///< the pattern matches a text from beginning to end
  kInsideJsonString  ///< a JSON string, without its quotes, in which the pattern occurs: `^` and `$` hold it
};

/// The texts of a regular expression of ECMA-262 that describes a regular language; docs/structure.md says
/// what is known. Throws Error(kBadInput), naming `where`.
NodePointer regex_node(std::string_view pattern, PatternUse use, const std::string& where);

}  // namespace verbatim
