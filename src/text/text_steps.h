#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"

namespace verbatim {

/// What is done to plain text before a model of words sees it.
struct TextSteps {
  Normalizer normalizer;
  AddedTokens normalized_added;  ///< added tokens that are searched for after normalization
  PreTokenizer pre_tokenizer;
};

/// Turns a segment of a text (valid UTF-8, without the added tokens that are searched for in the raw text)
/// into tokens: the steps apply, and `encode_word` is called with every word and appends its tokens. `first`
/// says that the segment begins the text.
void encode_words(const TextSteps& steps, std::string_view segment, bool first, std::vector<Token>& tokens,
                  const std::function<void(std::string_view)>& encode_word);

}  // namespace verbatim
