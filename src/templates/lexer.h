#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace verbatim::jinja {

/// A word of a template.
struct LexedToken {
  enum class Kind {
    kText,         ///< what stands outside of all tags, after white space was taken away
    kOutputBegin,  ///< "{{"
    kOutputEnd,    ///< "}}"
    kTagBegin,     ///< "{%"
    kTagEnd,       ///< "%}"
    kName,
    kString,  ///< its text is what the string holds
    kInteger,
    kFloat,
    kOperator,
    kEnd,
  };
  Kind kind = Kind::kEnd;
  std::string text;
  int32_t line = 1;
};

/// Cuts a template (valid UTF-8) into its words; comments are left out, and white space around tags is what
/// Hugging Face's settings of Jinja make of it (trim_blocks and lstrip_blocks). Throws Error(kBadInput) with
/// the line for what is no word.
std::vector<LexedToken> lex(std::string_view source);

}  // namespace verbatim::jinja
