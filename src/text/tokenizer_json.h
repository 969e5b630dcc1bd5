#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "text/tokenizer.h"
#include "text/tokenizer_config.h"

namespace verbatim {

struct TokenizerJsonOptions {
  std::string where = "tokenizer.json";  ///< names the file in errors
  TokenizerConfig config;                ///< the settings beside it
};

/// Makes a tokenizer of a Hugging Face tokenizer.json whose model is BPE, Unigram or WordPiece. Throws
/// Error(kBadInput) if it has another model or a step that is not supported, or is malformed.
std::shared_ptr<const Tokenizer> parse_tokenizer_json(std::string_view json,
                                                      const TokenizerJsonOptions& options);

/// Makes a tokenizer of a byte-level vocabulary in GPT-2's two files, the contents of vocab.json and
/// merges.txt.
std::shared_ptr<const Tokenizer> parse_vocab_json(std::string_view vocab, std::string_view merges,
                                                  const TokenizerJsonOptions& options);

/// Loads a tokenizer.json, or a vocab.json and the merges.txt beside it, with the settings beside them.
std::shared_ptr<const Tokenizer> load_tokenizer_json(const TokenizerFiles& files);

}  // namespace verbatim
