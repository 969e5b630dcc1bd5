#pragma once

#include <string>

#include "text/pre_tokenizer.h"

namespace verbatim {

/// The way in which a byte-level vocabulary of a GGUF file cuts a text into words.
struct GgufPreTokenizer {
  PreTokenizer steps;
  bool ignore_merges = false;  ///< see BpeModel::ignore_merges
};

/// The pre-tokenizer with a name, which a GGUF file states in tokenizer.ggml.pre. Throws Error(kBadInput),
/// naming `where` and the known names, for any other name.
GgufPreTokenizer gguf_pre_tokenizer(const std::string& name, const std::string& where);

}  // namespace verbatim
