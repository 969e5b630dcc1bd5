#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "verbatim/engine.h"
#include "verbatim/model.h"
#include "verbatim/recipe.h"

namespace verbatim {

/// How an agent makes use of a model and its tools.
enum class AgentStrategy {
  kCompiler,      ///< plans of many calls, which run side by side while the plan is written (LLMCompiler)
  kReact,         ///< one call at a time, each after the result of the one before (ReAct)
  kReactCareful,  ///< ReAct with instructions against loops and early ends
  kParallel,      ///< rounds of calls that need no result of each other
};

/// The strategy of a name: "compiler", "react", "react-careful" or "parallel". Throws Error(kUsage), listing
/// the names, for another.
AgentStrategy agent_strategy(std::string_view name);

/// What an agent works with and which limits it keeps.
struct AgentOptions {
  AgentStrategy strategy = AgentStrategy::kCompiler;

  /// The address of an OpenAI-compatible server up to "/v1"; empty: the engine below answers.
  std::string endpoint = {};
  /// The server's name of the model; empty: "default".
  std::string endpoint_model = {};
  /// The key that the server asks for; empty: none.
  std::string api_key = {};
  /// The engine that answers where there is no endpoint, with its model and the recipe to decode with. Both
  /// must outlive the agent.
  const Model* model = nullptr;
  Engine* engine = nullptr;
  Recipe recipe = {};

  /// A file of tools in JSON (docs/agent.md): commands, addresses, servers of the Model Context Protocol.
  /// Empty: none.
  std::filesystem::path tools = {};
  /// The corpus that the tool `search` searches; empty: there is no such tool.
  std::filesystem::path corpus = {};
  /// The folder that the tool `read_file` reads below; empty: there is no such tool.
  std::filesystem::path root = {};
  /// Allows every call that nobody decided on, so that nobody is asked. Tools that are denied stay so.
  bool allow_all = false;
  /// Asks a person whether a call may be made, given its tool and its arguments as JSON; the answer may come
  /// from any thread. Empty: such calls are not made.
  std::function<void(const std::string& tool, const std::string& arguments, std::function<void(bool)> answer)>
      ask = {};

  /// Examples for the planner: questions with their plans, as a text. Empty: none.
  std::string examples = {};
  /// Whether calls start while the plan is being written.
  bool streamed = true;
  double temperature = 0;
  uint64_t seed = 0;
  int64_t max_rounds = 0;        ///< plans, or turns of the other strategies; 0: 3 plans, 20 turns
  int64_t max_tokens = 200'000;  ///< of prompts and replies, in all
  /// Of one reply. 0: 2048, and 8192 of the engine, whose plans have as many calls as are sure to end in
  /// that.
  int64_t max_reply_tokens = 0;
  int64_t max_calls = 1000;  ///< of tools, in all
  int64_t concurrency = 64;  ///< calls at a time
  std::chrono::milliseconds max_time{600'000};
  /// The time after a plan's end in which its calls may still end; the joiner then gets what there is. 0: no
  /// such time.
  std::chrono::milliseconds stragglers{0};
};

/// Something that happened while an agent worked.
struct AgentEvent {
  double seconds = 0;  ///< since the question was asked
  /// "asked", "replied", "thought", "task", "approval", "started", "progress", "retry", "hedged", "settled",
  /// "wrong", "left_out", "answer" or "failed" (docs/agent.md says what each means).
  std::string kind = {};
  int64_t round = 0;  ///< the plan or turn, from 1
  int64_t task = 0;   ///< the task's number; 0: the event is of no task
  std::string tool = {};
  std::string state = {};  ///< of the task: "waiting", "running", "done", "failed", ...
  std::string text = {};
  std::vector<int64_t> inputs = {};  ///< the tasks whose results a task uses
  int64_t prompt_tokens = 0;         ///< of a reply
  int64_t reply_tokens = 0;          ///< of a reply
};

/// An event as a JSON object on one line.
std::string agent_event_json(const AgentEvent& event);

/// The outcome of a question.
struct AgentAnswer {
  std::string text = {};
  std::string error = {};  ///< why there is no answer; empty if there is one
  bool cancelled = false;
  bool too_long = false;  ///< the error is that the question leaves the model's context no room
  bool limited = false;   ///< the error is that a limit was met: of time, tokens, plans or the context
  bool late = false;      ///< that limit is AgentQuestion::max_time, and not one of the service
  bool no_tool = false;   ///< the error is that a tool has to be called, and none may be
  double seconds = 0;
  int64_t rounds = 0;
  int64_t requests = 0;  ///< to the model
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  ///< part of prompt_tokens: those that the own engine remembered
  int64_t reply_tokens = 0;
  int64_t structure_tokens = 0;  ///< part of reply_tokens: those that the grammar alone drafted
  int64_t calls = 0;             ///< tasks for which a tool was called
};

/// Prices for the report of a run, in any currency, for a million tokens.
struct AgentPrices {
  double prompt = 0;
  double reply = 0;
};

/// The prices of a model from a file in TOML with a table for each model, which has the numbers `prompt` and
/// `reply` (docs/agent.md). Throws Error(kBadInput) for a file that is not understood or does not have the
/// model, naming those that it has.
AgentPrices read_agent_prices(const std::filesystem::path& file, const std::string& model);

/// A page in HTML, whole in itself, that shows a run: the graph of its calls, when the model wrote and each
/// call ran, the requests and calls that decided how long it took, tokens and money.
std::string agent_report(const std::string& question, const std::vector<AgentEvent>& events,
                         const AgentPrices& prices);

/// Answers questions with a model and tools (docs/agent.md). Not for use from several threads at once, but
/// for cancel().
class Agent {
 public:
  /// Starts the servers of tools and asks them what they have. Throws Error(kUsage) for options that do not
  /// fit together, and Error(kBadInput) for files that are not what they should be and for servers that
  /// cannot be had.
  explicit Agent(AgentOptions options);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  /// Tools of servers that were left out as no plan can call them, a line for each.
  const std::vector<std::string>& warnings() const;

  /// Answers a question, and tells of everything that happens on the way. With `record`, a file is written
  /// from which replay_agent() does all of it again. Throws Error(kBadInput) for a question that is not UTF-8
  /// or a file that cannot be written, and what `event` or `ask` has thrown, when all calls have ended.
  AgentAnswer ask(const std::string& question, const std::function<void(const AgentEvent&)>& event = {},
                  const std::filesystem::path& record = {});
  /// Ends the question that is being answered. May be called from any thread.
  void cancel();

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// Does again what a recording holds, without a model and tools: the same events, the same answer. `question`
/// becomes the question that was asked. Throws Error(kBadInput) for a file that is no recording or does not
/// fit this version.
AgentAnswer replay_agent(const std::filesystem::path& recording, std::string& question,
                         const std::function<void(const AgentEvent&)>& event = {});

}  // namespace verbatim
