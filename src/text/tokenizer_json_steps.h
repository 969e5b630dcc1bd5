#pragma once

#include <string>
#include <vector>

#include "text/json_fields.h"
#include "text/normalizer.h"
#include "text/piece_decoder.h"
#include "text/pre_tokenizer.h"
#include "text/vocabulary.h"

namespace verbatim {

// The parts of a tokenizer.json around its model. Each function throws Error(kBadInput), naming `where`, if a
// step is malformed or not supported.

Normalizer parse_normalizer(const Json& tokenizer, const std::string& where);

PreTokenizer parse_pre_tokenizer(const Json& tokenizer, const std::string& where);

PieceDecoder parse_decoder(const Json& tokenizer, const std::string& where);

/// The tokens that the post-processor puts before and after a text.
struct TextFrame {
  std::vector<Token> before;
  std::vector<Token> after;
};
TextFrame parse_post_processor(const Json& tokenizer, const Vocabulary& vocabulary, const std::string& where);

}  // namespace verbatim
