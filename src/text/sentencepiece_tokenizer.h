#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "text/tokenizer_config.h"

namespace verbatim {

/// Makes a tokenizer of the contents of a SentencePiece tokenizer.model. Throws Error(kBadInput), naming
/// `where`, if it is malformed.
std::shared_ptr<const Tokenizer> parse_sentencepiece(std::string_view bytes, const std::string& where,
                                                     const TokenizerConfig& config);

/// Loads a tokenizer.model with the settings beside it.
std::shared_ptr<const Tokenizer> load_sentencepiece(const TokenizerFiles& files);

}  // namespace verbatim
