#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/model/endpoint.h"
#include "verbatim/chat_template.h"
#include "verbatim/generate.h"
#include "verbatim/model.h"

namespace verbatim::agent {

/// The conversations of one run as the model's chat template writes them. What a conversation has in common
/// with the one before it is not tokenized again, so that all turns of a run take time for their own text.
class Conversation {
 public:
  /// Throws Error(kBadInput) for a model without a vocabulary and for a template that cannot be parsed.
  explicit Conversation(const Model& model);

  /// The tokens of a conversation of the user's and the model's messages, a system's first if there is one,
  /// up to where the reply begins. Throws PromptTooLong, before anything is written, where they cannot have
  /// fewer than `most` tokens, and Error(kBadInput) for what is not UTF-8 and what the template refuses.
  const std::vector<int32_t>& tokens(const std::vector<ModelMessage>& messages, int64_t most);
  /// Adds what ends a reply to the options.
  void add_stops(GenerateOptions& options) const;

 private:
  size_t longest_token();

  Model model_;
  ChatTemplate template_;
  std::vector<ModelMessage> messages_;  // of the last conversation
  std::string rendered_;                // the text that tokens_ stands for
  std::vector<int32_t> tokens_;
  size_t longest_token_ = 0;  // in bytes; 0: not known yet
};

}  // namespace verbatim::agent
