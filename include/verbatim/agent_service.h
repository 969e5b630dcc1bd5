#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "verbatim/agent.h"
#include "verbatim/engine.h"
#include "verbatim/generate.h"
#include "verbatim/model.h"
#include "verbatim/recipe.h"

namespace verbatim {

/// A tool of a server of the Model Context Protocol.
struct AgentTool {
  std::string name = {};       ///< the server's name of it
  std::string plan_name = {};  ///< its name in plans and events, which no other server's tool has
  std::string description = {};
  std::string parameters = {};  ///< the JSON schema of its arguments
  bool asks = false;            ///< its policy is `ask`: somebody has to have agreed to its calls
};

/// A server of tools and those that plans may call; tools that are denied are not among them.
struct AgentToolServer {
  std::string label = {};
  std::vector<AgentTool> tools = {};
};

/// What was said before a question.
struct AgentMessage {
  std::string role = {};  ///< "user" or "assistant"
  std::string text = {};
};

/// A question, the engine that answers it, and what it may take. The limits of the service hold as well.
struct AgentQuestion {
  std::string text = {};
  std::string instructions = {};
  std::vector<AgentMessage> earlier = {};
  /// The tools that may be called, by their names in plans. Whoever asks has agreed to the calls of all.
  std::vector<std::string> tools = {};
  bool must_call = false;  ///< the first plan has a call at least; without a tool there is an error
  const Model* model = nullptr;
  Engine* engine = nullptr;
  Recipe recipe = {};
  std::shared_ptr<void> owner = {};  ///< keeps model and engine until the question is answered
  int64_t context = 0;               ///< the most tokens of a prompt with its reply; 0: the model's context
  int64_t max_prompt_tokens = 0;     ///< of the prompt of one request to the model; 0: the context
  double temperature = 0;
  uint64_t seed = 0;
  int64_t max_reply_tokens = 0;  ///< of one reply; 0: 8192
  int64_t max_calls = 0;         ///< of tools; 0: the service's limit
  bool one_call_at_a_time = false;
  /// Where this is over before the service's time, AgentAnswer::late says so.
  std::chrono::milliseconds max_time = std::chrono::hours(24);
};

/// How a service tells of a question. No hook may wait. `event` and `ended` are called on the service's
/// thread; what `event` throws ends the question with that error, and the others must not throw.
struct AgentQuestionHooks {
  std::function<void(const AgentEvent&)> event = {};
  /// Called once, after the last event, when nothing of the question runs any more, but for a pass of the
  /// model that was begun before the question was called off.
  std::function<void(const AgentAnswer&)> ended = {};
  /// Called on any thread when tokens of a reply of the model's came: whether they are its first ones, and
  /// how many seconds after it was asked for, or after the ones before.
  std::function<void(int64_t count, bool first, double seconds)> tokens = {};
  /// Called on any thread for each reply of the model's that has ended, also one that was called off, which
  /// may be after `ended`.
  std::function<void(const GenerateResult& result, int64_t prompt_tokens)> generated = {};
};

/// Answers questions side by side with the tools of servers that all of them share. The members may be called
/// from any thread, and none of them waits for a tool or a model.
class AgentService {
 public:
  virtual ~AgentService() = default;
  virtual const std::vector<AgentToolServer>& servers() const = 0;
  /// Tools that were left out as no plan can call them, a line for each.
  virtual const std::vector<std::string>& warnings() const = 0;
  /// Begins to answer, and returns the question's number; 0, and nothing is called, if as many questions as
  /// the service takes are being answered.
  virtual int64_t start(AgentQuestion question, AgentQuestionHooks hooks) = 0;
  /// Ends a question early: its reply within one pass of the model, and its calls as their tools are told. A
  /// number whose question is over, or 0, is passed over.
  virtual void cancel(int64_t question) = 0;
};

/// What all questions of a service may take.
struct AgentServiceOptions {
  /// A file of tools in JSON as `verbatim agent` reads it (docs/agent.md), which has servers alone.
  std::filesystem::path servers = {};
  int64_t max_questions = 16;                   ///< that are answered at a time
  int64_t max_rounds = 3;                       ///< plans of a question
  int64_t max_calls = 100;                      ///< of tools for a question
  int64_t max_tokens = 200'000;                 ///< of prompts and replies for a question
  std::chrono::milliseconds max_time{300'000};  ///< for a question
};

/// Starts the servers and asks them what they have. Throws Error(kUsage) for limits below 1, and
/// Error(kBadInput) for a file that is not what it should be and for servers that cannot be had. The servers
/// end with the service, after all questions, which are called off.
std::shared_ptr<AgentService> start_agent_service(const AgentServiceOptions& options);

}  // namespace verbatim
