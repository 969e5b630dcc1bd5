#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "text/tokenizer_files.h"
#include "text/vocabulary.h"

namespace verbatim {

/// What the settings beside a vocabulary (tokenizer_config.json, special_tokens_map.json) add to it.
struct TokenizerConfig {
  std::optional<bool> add_bos;
  std::optional<bool>
      legacy;  ///< false: a SentencePiece vocabulary puts a space first only at the start of a text
  std::optional<bool> add_prefix_space;
  std::optional<std::string> bos;
  std::optional<std::string> eos;
  std::vector<std::string> special;  ///< the texts of all named special tokens, bos and eos among them
  std::vector<AddedToken> added;     ///< added_tokens_decoder
};

/// The settings among the files; those that are absent stay unset. Throws Error(kBadInput) for a malformed
/// file.
TokenizerConfig tokenizer_config_of(const TokenizerFiles& files);

/// The same from the contents of a tokenizer_config.json.
TokenizerConfig parse_tokenizer_config(std::string_view json, const std::string& where);

/// Adds the tokens that the settings name to the vocabulary, and says which are special.
void apply_tokenizer_config(const TokenizerConfig& config, const std::string& where, Vocabulary& vocabulary,
                            AddedTokens& added);

/// Gives an added token its place in the vocabulary. Throws Error(kBadInput), naming `where`, if its id is
/// absurd.
void place_added_token(const AddedToken& token, const std::string& where, Vocabulary& vocabulary);

}  // namespace verbatim
