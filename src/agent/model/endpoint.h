#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/loop/loop.h"
#include "verbatim/error.h"
#include "verbatim/structure.h"

namespace verbatim::agent {

/// A message of a conversation with a model.
struct ModelMessage {
  std::string role;  ///< "system", "user" or "assistant"
  std::string content;

  bool operator==(const ModelMessage&) const = default;
};

/// A conversation is longer than the endpoint takes.
class PromptTooLong : public Error {
 public:
  explicit PromptTooLong(const std::string& message) : Error(ErrorKind::kBadInput, message) {}
};

struct ModelRequest {
  std::vector<ModelMessage> messages;
  int64_t max_tokens = 1024;
  double temperature = 0;
  uint64_t seed = 0;
  /// What the reply is held to, where the endpoint can (Endpoint::constrains()).
  std::optional<Structure> structure = {};
};

/// What a reply came to.
struct ModelReply {
  std::string error = {};  ///< one line, if there is none
  bool cut = false;        ///< it reached max_tokens
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  ///< part of prompt_tokens: those that were remembered
  int64_t reply_tokens = 0;
  int64_t structure_tokens = 0;  ///< part of reply_tokens: those that the structure alone drafted
};

struct ModelHooks {
  std::function<void(std::string_view)> piece = {};  ///< of the text
  /// Called once, after the last piece.
  std::function<void(const ModelReply&)> ended = {};
};

/// A reply under way. Destroying it ends it, and no hook is called any more.
class ModelStream {
 public:
  virtual ~ModelStream() = default;
};

/// A language model that answers conversations. The hooks are called by the loop, never from within start().
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  virtual std::unique_ptr<ModelStream> start(ModelRequest request, ModelHooks hooks) = 0;
  /// Whether replies are held to ModelRequest::structure.
  virtual bool constrains() const { return false; }
  /// The tokens that a reply to these messages can have at most, where the endpoint knows; 0: not one. Throws
  /// PromptTooLong for messages that it takes no reply to, with the reason, and Error(kBadInput) for what it
  /// cannot write.
  virtual std::optional<int64_t> room(const std::vector<ModelMessage>& /*messages*/) const { return {}; }
};

}  // namespace verbatim::agent
