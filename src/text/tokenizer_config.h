#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "text/tokenizer_files.h"
#include "text/vocabulary.h"

namespace verbatim {

/// The settings of a vocabulary that are in files of their own (tokenizer_config.json,
/// special_tokens_map.json).
struct TokenizerConfig {
  std::optional<bool> add_bos;
  std::optional<bool> add_eos;
  std::optional<bool>
      legacy;  ///< false: a SentencePiece vocabulary puts a space first only at the start of a text
  std::optional<bool> add_prefix_space;
  std::optional<std::string> bos;
  std::optional<std::string> eos;
  std::vector<std::string> special;  ///< the texts of all named special tokens, bos and eos among them
  std::vector<AddedToken> added;     ///< added_tokens_decoder
};

/// Reads the settings from the files of a vocabulary; absent settings stay unset. Throws Error(kBadInput) if
/// a file is malformed.
TokenizerConfig tokenizer_config_of(const TokenizerFiles& files);

/// Reads the settings from the contents of a tokenizer_config.json.
TokenizerConfig parse_tokenizer_config(std::string_view json, const std::string& where);

/// Adds the tokens that the settings name to the vocabulary and to `added`, and marks special ones.
void apply_tokenizer_config(const TokenizerConfig& config, const std::string& where, Vocabulary& vocabulary,
                            AddedTokens& added);

/// Gives an added token its place in the vocabulary. Throws Error(kBadInput), naming `where`, if its id is
/// absurd.
void place_added_token(const AddedToken& token, const std::string& where, Vocabulary& vocabulary);

}  // namespace verbatim
