#pragma once

#include <string>
#include <utility>
#include <vector>

#include "text/json_fields.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"

namespace verbatim {

// The parts of a tokenizer.json around its model. Each function throws Error(kBadInput), naming `where`, if a
// step is malformed or not supported.

Normalizer parse_normalizer(const Json& tokenizer, const std::string& where);

struct PreTokenizerDescription {
  PreTokenizer steps;
  bool byte_level = false;  ///< words become sequences of bytes
};
PreTokenizerDescription parse_pre_tokenizer(const Json& tokenizer, const std::string& where);

/// Turns a piece of the vocabulary back into text.
struct PieceDecoder {
  bool byte_level = false;
  bool byte_fallback = false;
  bool drop_first_space = false;
  std::vector<std::pair<std::string, std::string>> replacements;

  std::string decode(const std::string& piece) const;
};
PieceDecoder parse_decoder(const Json& tokenizer, const std::string& where);

/// The text of the special token that the post-processor puts before a text; nothing when there is none.
std::optional<std::string> parse_leading_special_token(const Json& tokenizer, const std::string& where);

}  // namespace verbatim
