#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "model/decoder.h"
#include "structure/compiled_structure.h"
#include "text/chat_template_source.h"
#include "text/tokenizer.h"

namespace verbatim {

/// The weights, the vocabulary and the config that all copies of a Model share.
struct ModelData {
  Checkpoint checkpoint;
  Decoder decoder;
  std::shared_ptr<const Tokenizer> tokenizer;  ///< null when the checkpoint has none
  ChatTemplateSource conversation;             ///< what the vocabulary's files say of conversations
  std::vector<std::string> warnings;
  std::shared_ptr<StructureCache> structures;  ///< null without a tokenizer

  /// The tokenizer. Throws Error(kBadInput) when the checkpoint has none.
  const Tokenizer& text() const;
};

/// The tokenizer of a checkpoint, or null when it has none. Throws Error(kBadInput) when the tokenizer is
/// malformed or has more tokens than the model.
std::shared_ptr<const Tokenizer> tokenizer_of(const Checkpoint& checkpoint);

/// Throws the Error(kBadInput) of text that meets a checkpoint without a tokenizer.
[[noreturn]] void refuse_without_vocabulary(const Checkpoint& checkpoint);

}  // namespace verbatim
