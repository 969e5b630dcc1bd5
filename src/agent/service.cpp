#include "verbatim/agent_service.h"

#include <fmt/format.h>

#include <atomic>
#include <map>
#include <thread>

#include "agent/config/tool_servers.h"
#include "agent/config/tools_file.h"
#include "agent/guard.h"
#include "agent/json.h"
#include "agent/loop/real_loop.h"
#include "agent/mcp/mcp_client.h"
#include "agent/model/engine_endpoint.h"
#include "agent/public_events.h"
#include "agent/run/run.h"
#include "verbatim/error.h"
#include "verbatim/text.h"

namespace verbatim::agent {

namespace {

constexpr int64_t kReplyTokens = 8192;

class Service : public AgentService {
 public:
  explicit Service(const AgentServiceOptions& options) : options_(options) {
    if (options.max_questions < 1 || options.max_rounds < 1 || options.max_calls < 1 ||
        options.max_tokens < 1 || options.max_time.count() < 1) {
      throw Error(ErrorKind::kUsage, "the limits of a service begin with 1");
    }
    try {
      connect();
    } catch (...) {  // the servers that began end as they do otherwise
      end_servers(loop_, clients_);
      throw;
    }
    thread_ = std::thread([this] { work(); });
  }

  ~Service() override {
    loop_.post([this] {
      ending_ = true;
      for (auto& [id, one] : questions_) one->run->cancel();
      if (questions_.empty()) loop_.stop();
    });
    thread_.join();
    end_servers(loop_, clients_);
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  const std::vector<AgentToolServer>& servers() const override { return servers_; }
  const std::vector<std::string>& warnings() const override { return warnings_; }

  int64_t start(AgentQuestion question, AgentQuestionHooks hooks) override {
    if (open_.fetch_add(1) >= options_.max_questions) {
      --open_;
      return 0;
    }
    const int64_t id = ++made_;
    loop_.post([this, id, question = std::move(question), hooks = std::move(hooks)]() mutable {
      begin(id, std::move(question), std::move(hooks));
    });
    return id;
  }

  void cancel(int64_t question) override {
    loop_.post([this, question] {
      const auto found = questions_.find(question);
      if (found == questions_.end()) return;
      found->second->cancelled = true;
      found->second->run->cancel();
    });
  }

 private:
  /// A question that is being answered. The run goes first, and the engine's owner last.
  struct Open {
    std::shared_ptr<void> owner;
    std::unique_ptr<Endpoint> endpoint;
    std::unique_ptr<Guard> guard;
    std::unique_ptr<Run> run;
    std::function<void(const AgentAnswer&)> ended;
    bool cancelled = false;
    bool own_time = false;  // the question's time is shorter than the service's
  };

  static std::string unexpected(const std::string& what) {
    return "the answer ended by a fault that nobody expected: " + what;
  }

  /// Works until the service ends. What a run throws ends that run; what is thrown outside of all, by what
  /// runs share, ends those that there are, as it may have been meant for any, and the service goes on.
  void work() {
    for (;;) {
      try {
        loop_.run();
        return;
      } catch (const std::exception& error) {
        end_all(error.what());
      } catch (...) {
        end_all("something was thrown that is no exception");
      }
      if (ending_ && questions_.empty()) return;
    }
  }

  void end_all(const std::string& what) {
    std::vector<int64_t> open;
    for (const auto& [id, one] : questions_) open.push_back(id);
    for (const int64_t id : open) end(id, {.error = unexpected(what)});
  }

  void connect() {
    ToolSet functions;
    const std::vector<ConfiguredServer> configured = read_tools_file(loop_, options_.servers, functions);
    const std::string file = shown(options_.servers.string(), kShownBytes);
    if (!functions.entries().empty())
      throw Error(ErrorKind::kBadInput, file + ": `tools` is for `verbatim agent`; name `mcpServers` alone");
    if (configured.empty()) throw Error(ErrorKind::kBadInput, file + ": no server is named in `mcpServers`");
    const std::vector<ServedTool> served = connect_servers(loop_, configured, clients_, tools_, warnings_);
    for (size_t i = 0; i < configured.size(); ++i) {
      AgentToolServer server{.label = configured[i].options.name};
      for (const ServedTool& one : served) {
        const ToolEntry& entry = *tools_.find(one.as);
        if (one.server != i || entry.policy == Policy::kDeny) continue;
        server.tools.push_back({.name = one.name,
                                .plan_name = one.as,
                                .description = valid_utf8(entry.tool->declaration().description),
                                .parameters = dump(entry.tool->declaration().parameters),
                                .asks = entry.policy == Policy::kAsk});
      }
      servers_.push_back(std::move(server));
    }
  }

  RunOptions run_options(const AgentQuestion& question) const {
    RunOptions run;
    run.instructions = question.instructions;
    for (const AgentMessage& message : question.earlier) run.earlier.push_back({message.role, message.text});
    run.must_call = question.must_call;
    run.shared_prompt = true;
    run.max_rounds = options_.max_rounds;
    run.max_tokens = options_.max_tokens;
    run.max_reply_tokens = question.max_reply_tokens > 0 ? question.max_reply_tokens : kReplyTokens;
    run.max_time = std::chrono::duration_cast<Duration>(
        std::clamp(question.max_time, std::chrono::milliseconds(1), options_.max_time));
    run.temperature = question.temperature;
    run.seed = question.seed;
    run.executor.calls = options_.max_calls;
    if (question.max_calls > 0) run.executor.calls = std::min(question.max_calls, options_.max_calls);
    if (question.one_call_at_a_time) run.executor.concurrency = 1;
    return run;
  }

  void begin(int64_t id, AgentQuestion question, AgentQuestionHooks hooks) {
    Open& open = *questions_.emplace(id, std::make_unique<Open>()).first->second;
    open.owner = std::move(question.owner);
    open.ended = std::move(hooks.ended);
    open.own_time = question.max_time < options_.max_time;
    try {
      set_up(id, open, question, hooks);
      if (ending_) open.run->cancel();
    } catch (const Error& error) {
      end(id, {.error = error.what()});
    } catch (const std::exception& error) {
      end(id, {.error = unexpected(error.what())});
    }
  }

  void set_up(int64_t id, Open& open, const AgentQuestion& question, AgentQuestionHooks& hooks) {
    ToolSet tools;
    for (const std::string& name : question.tools) {
      const ToolEntry* const entry = tools_.find(name);
      if (!entry || entry->policy == Policy::kDeny || tools.find(name)) continue;
      ToolEntry allowed = *entry;
      allowed.policy = Policy::kAllow;
      tools.add(std::move(allowed));
    }
    open.endpoint = engine_endpoint(loop_, *question.model, *question.engine, question.recipe,
                                    {.context = question.context,
                                     .max_prompt_tokens = question.max_prompt_tokens,
                                     .watch = {std::move(hooks.tokens), std::move(hooks.generated)}});
    open.guard = std::make_unique<Guard>(loop_, *open.endpoint, tools, [this, id](const std::string& what) {
      // The run is in the middle of something.
      loop_.post([this, id, what] {
        if (questions_.count(id) != 0) end(id, {.error = unexpected(what)});
      });
    });
    RunHooks run_hooks;
    if (hooks.event) {
      run_hooks.event = [event = std::move(hooks.event)](const RunEvent& told) { event(public_event(told)); };
    }
    run_hooks.ended = [this, id](const RunResult& result) { end(id, result); };
    open.run = std::make_unique<Run>(open.guard->loop(), open.guard->endpoint(), open.guard->tools(),
                                     run_options(question), question.text, std::move(run_hooks));
  }

  void end(int64_t id, const RunResult& result) {
    std::unique_ptr<Open> one = std::move(questions_.extract(id).mapped());
    AgentAnswer answer = public_answer(result, one->run ? calls_of(one->run->tasks()) : 0);
    answer.cancelled = one->cancelled || ending_;
    answer.late = result.out_of_time && one->own_time;
    const auto ended = std::move(one->ended);
    one.reset();
    --open_;
    try {
      if (ended) ended(answer);
    } catch (const std::exception&) {
      // Nobody is left to be told.
    }
    if (ending_ && questions_.empty()) loop_.stop();
  }

  AgentServiceOptions options_;
  RealLoop loop_;
  ToolSet tools_;
  std::vector<std::string> warnings_;
  std::vector<std::shared_ptr<McpClient>> clients_;
  std::vector<AgentToolServer> servers_;
  std::atomic<int64_t> open_{0};
  std::atomic<int64_t> made_{0};
  std::map<int64_t, std::unique_ptr<Open>> questions_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace

}  // namespace verbatim::agent

namespace verbatim {

std::shared_ptr<AgentService> start_agent_service(const AgentServiceOptions& options) {
  return std::make_shared<agent::Service>(options);
}

}  // namespace verbatim
