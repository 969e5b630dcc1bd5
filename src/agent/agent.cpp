#include "verbatim/agent.h"

#include <fmt/format.h>

#include <fstream>

#include "agent/builtin/builtin_tools.h"
#include "agent/config/tool_servers.h"
#include "agent/config/tools_file.h"
#include "agent/json.h"
#include "agent/loop/real_loop.h"
#include "agent/mcp/mcp_client.h"
#include "agent/model/engine_endpoint.h"
#include "agent/model/openai_endpoint.h"
#include "agent/public_events.h"
#include "agent/record/journal.h"
#include "agent/run/run.h"
#include "verbatim/error.h"
#include "verbatim/text.h"

namespace verbatim {

namespace {

using namespace agent;  // NOLINT: the wing behind this interface

constexpr size_t kMostRecording = size_t{1} << 30;

RunOptions run_options(const AgentOptions& options) {
  RunOptions run;
  run.strategy = static_cast<RunStrategy>(options.strategy);
  run.examples = options.examples;
  run.streamed = options.streamed;
  run.shared_prompt = options.endpoint.empty();
  constexpr int64_t kPlans = 3;
  constexpr int64_t kTurns = 20;
  run.max_rounds = options.max_rounds;
  if (run.max_rounds == 0) run.max_rounds = options.strategy == AgentStrategy::kCompiler ? kPlans : kTurns;
  run.max_tokens = options.max_tokens;
  constexpr int64_t kReply = 2048;
  constexpr int64_t kBoundedReply = 8192;
  run.max_reply_tokens = options.max_reply_tokens;
  if (run.max_reply_tokens == 0) run.max_reply_tokens = options.endpoint.empty() ? kBoundedReply : kReply;
  run.max_time = std::chrono::duration_cast<Duration>(options.max_time);
  run.temperature = options.temperature;
  run.seed = options.seed;
  run.executor.concurrency = static_cast<int>(options.concurrency);
  run.executor.calls = options.max_calls;
  run.executor.stragglers = std::chrono::duration_cast<Duration>(options.stragglers);
  return run;
}

void check(const AgentOptions& options) {
  const auto usage = [](const std::string& message) { throw Error(ErrorKind::kUsage, message); };
  if (options.endpoint.empty() && (!options.model || !options.engine))
    usage("an agent wants an endpoint or an engine with its model");
  if (options.max_rounds < 0 || options.max_tokens < 1 || options.max_reply_tokens < 0 ||
      options.max_calls < 1 || options.concurrency < 1 || options.concurrency > 10'000 ||
      options.max_time.count() < 1 || options.stragglers.count() < 0) {
    usage("an agent's limits begin with 1, and at most 10000 calls run at a time");
  }
}

}  // namespace

AgentStrategy agent_strategy(std::string_view name) {
  if (name == "compiler") return AgentStrategy::kCompiler;
  if (name == "react") return AgentStrategy::kReact;
  if (name == "react-careful") return AgentStrategy::kReactCareful;
  if (name == "parallel") return AgentStrategy::kParallel;
  throw Error(ErrorKind::kUsage,
              fmt::format("`{}` is no strategy; they are compiler, react, react-careful, parallel",
                          shown(name, kShownBytes)));
}

struct Agent::Implementation {
  explicit Implementation(AgentOptions given) : options(std::move(given)) {
    check(options);
    try {
      begin();
    } catch (...) {  // the servers that began end as they do after a run
      end();
      throw;
    }
  }
  ~Implementation() { end(); }
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;

  void begin() {
    tools.add(math_tool(loop));
    if (!options.corpus.empty()) tools.add(search_tool(loop, options.corpus));
    if (!options.root.empty()) tools.add(read_file_tool(loop, options.root));
    std::vector<ConfiguredServer> servers;
    if (!options.tools.empty()) servers = read_tools_file(loop, options.tools, tools);
    connect_servers(loop, servers, clients, tools, warnings);
    if (options.allow_all) {
      ToolSet allowed;
      for (ToolEntry entry : tools.entries()) {
        if (entry.policy == Policy::kAsk) entry.policy = Policy::kAllow;
        allowed.add(std::move(entry));
      }
      tools = std::move(allowed);
    }
    endpoint = options.endpoint.empty()
                   ? engine_endpoint(loop, *options.model, *options.engine, options.recipe)
                   : openai_endpoint(loop, {.url = options.endpoint,
                                            .model = options.endpoint_model,
                                            .api_key = options.api_key});
  }

  void end() { end_servers(loop, clients); }

  AgentOptions options;
  RealLoop loop;
  ToolSet tools;
  std::vector<std::string> warnings;
  std::vector<std::shared_ptr<McpClient>> clients;
  std::unique_ptr<Endpoint> endpoint;
  std::unique_ptr<Recorder> recorder;
  std::unique_ptr<Run> run;
  bool cancelled = false;
  int64_t asked = 0;  // questions so far
};

Agent::Agent(AgentOptions options) : implementation_(std::make_unique<Implementation>(std::move(options))) {}

Agent::~Agent() = default;

const std::vector<std::string>& Agent::warnings() const {
  return implementation_->warnings;
}

AgentAnswer Agent::ask(const std::string& question, const std::function<void(const AgentEvent&)>& event,
                       const std::filesystem::path& record) {
  Implementation& self = *implementation_;
  require_utf8(question, "the question");
  std::ofstream file;
  if (!record.empty()) {
    file.open(record, std::ios::binary | std::ios::trunc);
    if (!file)
      throw Error(ErrorKind::kBadInput, fmt::format("cannot write {}", shown(record.string(), kShownBytes)));
  }
  const RunOptions options = run_options(self.options);
  RunResult result;
  std::exception_ptr failure;
  self.cancelled = false;
  const int64_t number = ++self.asked;
  // What throws ends the run, and nothing of it may be called when this function has returned.
  struct RunGuard {
    Implementation& self;
    ~RunGuard() {
      self.run.reset();
      self.recorder.reset();
    }
  };
  const RunGuard guard{self};
  const auto fail = [&self, &failure, number] {
    failure = std::current_exception();
    self.loop.post([&self, number] {
      if (self.run && self.asked == number) self.run->cancel();
    });
  };
  self.loop.post([&, number] {
    RunHooks hooks;
    if (event) {
      hooks.event = [&event, &failure, fail](const RunEvent& told) {
        if (failure) return;
        try {
          event(public_event(told));
        } catch (...) {
          fail();
        }
      };
    }
    if (self.options.ask) {
      // An answer may come when the run that asked is over.
      hooks.ask = [&self, &failure, number, fail](const Task& task, std::function<void(bool)> answer) {
        if (failure) return;
        try {
          self.options.ask(task.plan.tool, dump(task.arguments),
                           [&self, number, answer = std::move(answer)](bool allowed) {
                             self.loop.post([&self, number, answer, allowed] {
                               if (self.run && self.asked == number) answer(allowed);
                             });
                           });
        } catch (...) {
          fail();
        }
      };
    }
    hooks.ended = [&](const RunResult& end) {
      result = end;
      self.loop.stop();
    };
    try {
      if (record.empty()) {
        self.run =
            std::make_unique<Run>(self.loop, *self.endpoint, self.tools, options, question, std::move(hooks));
      } else {
        self.recorder = std::make_unique<Recorder>(self.loop, *self.endpoint, self.tools);
        hooks.ask = self.recorder->recorded(std::move(hooks.ask));
        self.run = std::make_unique<Run>(self.recorder->loop(), self.recorder->endpoint(),
                                         self.recorder->tools(), options, question, std::move(hooks));
      }
    } catch (...) {
      failure = std::current_exception();
      self.loop.stop();
    }
  });
  self.loop.run();
  if (failure) std::rethrow_exception(failure);
  if (self.recorder) file << self.recorder->text(options, question);
  if (file.is_open() && !file.flush()) {
    throw Error(ErrorKind::kMachine, fmt::format("cannot write {}", shown(record.string(), kShownBytes)));
  }
  AgentAnswer answer = public_answer(result, calls_of(self.run->tasks()));
  answer.cancelled = self.cancelled;
  return answer;
}

void Agent::cancel() {
  Implementation& self = *implementation_;
  self.loop.post([&self] {
    if (!self.run) return;
    self.cancelled = true;
    if (self.recorder) self.recorder->cancelled();
    self.run->cancel();
  });
}

AgentAnswer replay_agent(const std::filesystem::path& recording, std::string& question,
                         const std::function<void(const AgentEvent&)>& event) {
  int64_t calls = 0;
  const RunResult result = agent::replay(
      read_text(recording, kMostRecording), question,
      [&event](const RunEvent& told) {
        if (event) event(public_event(told));
      },
      calls);
  return public_answer(result, calls);
}

}  // namespace verbatim
