#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace verbatim {

/// What the files of a vocabulary say of conversations.
struct ChatTemplateSource {
  /// The text of the model's chat template, if it has one.
  std::optional<std::string> text;
  /// The template that is used in place of `text` when there are tools, if the model has one.
  std::optional<std::string> text_with_tools;
  /// The spellings of special tokens, by the names under which templates know them: "bos_token",
  /// "eos_token", "unk_token" and "pad_token", without those that the files do not name.
  std::vector<std::pair<std::string, std::string>> special_tokens;
};

/// Reads what the files of a vocabulary say of conversations: chat_template.jinja, or else
/// chat_template.json, or else the settings in tokenizer_config.json; of a GGUF file its metadata. Throws
/// Error(kBadInput) if one of them is malformed.
ChatTemplateSource read_chat_template(const TokenizerSource& source);

}  // namespace verbatim
