#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

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

/// The regular expressions of the pre-tokenizer with a name, each of which cuts what the one before left.
/// Throws as gguf_pre_tokenizer() does.
std::vector<std::string> gguf_pre_tokenizer_patterns(const std::string& name, const std::string& where);

/// The name of the pre-tokenizer with these regular expressions; nothing if no name stands for them.
std::optional<std::string> gguf_pre_tokenizer_name(std::span<const std::string> patterns, bool ignore_merges);

}  // namespace verbatim
