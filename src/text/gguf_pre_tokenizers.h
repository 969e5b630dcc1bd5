#pragma once

#include <string>

#include "text/pre_tokenizer.h"

namespace verbatim {

struct GgufPreTokenizer {
  PreTokenizer steps;
  bool ignore_merges = false;  ///< see BpeModel
};

/// What a GGUF file names in tokenizer.ggml.pre: how a byte-level vocabulary cuts a text into words. Throws
/// Error(kBadInput), naming `where` and the names that are known, for any other.
GgufPreTokenizer gguf_pre_tokenizer(const std::string& name, const std::string& where);

}  // namespace verbatim
