#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "agent_view.h"
#include "command_line.h"
#include "commands.h"
#include "fail.h"
#include "interrupt.h"
#include "load_model.h"
#include "model_options.h"
#include "progress.h"
#include "text_io.h"
#include "verbatim/agent.h"

namespace verbatim::app {

namespace {

constexpr const char* kKeyVariable = "OPENAI_API_KEY";
constexpr std::chrono::milliseconds kTick{100};
constexpr size_t kWidth = 96;

struct Options {
  CommonOptions common;
  AgentOptions agent;
  std::string question;
  std::string strategy = "compiler";
  std::string tools;
  std::string corpus;
  std::string root;
  std::string examples;
  std::string record;
  std::string replay;
  std::string report;
  std::string price_table;
  double max_seconds = 600;
  double stragglers = 0;
  AgentPrices prices;
  bool whole_plans = false;
  bool json = false;
};

/// Asks a person on the terminal, one call after the other, whether it may be made.
class Questions {
 public:
  Questions(AgentView& view, const std::atomic<bool>& over)
      : view_(view), over_(over), thread_([this] { work(); }) {}
  ~Questions() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void add(const std::string& tool, const std::string& arguments, std::function<void(bool)> answer) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back({tool, arguments, std::move(answer)});
    }
    changed_.notify_all();
  }

 private:
  struct Question {
    std::string tool;
    std::string arguments;
    std::function<void(bool)> answer;
  };

  void work() {
    while (true) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
      if (ended_) return;
      const Question question = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      view_.pause();
      // All that is allowed is shown, and the question stands last, so that it is seen. What was typed before
      // is no answer to it.
      const std::string tool = one_line(question.tool);
      const bool is_short = tool.size() + question.arguments.size() < kWidth;
      if (!is_short) say_text(tool + " with\n" + folded(question.arguments, kWidth));
      tcflush(STDIN_FILENO, TCIFLUSH);
      say("allow {}? [y/N] ", is_short ? tool + " " + one_line(question.arguments) : "this call of " + tool);
      const bool allowed = read_yes();
      view_.resume();
      question.answer(allowed);
    }
  }

  bool read_yes() {
    std::string line;
    while (!over_) {
      pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
      if (poll(&input, 1, static_cast<int>(kTick.count())) <= 0) continue;
      char c = 0;
      if (read(STDIN_FILENO, &c, 1) != 1) return false;
      if (c == '\n') return line == "y" || line == "Y" || line == "yes";
      line += c;
    }
    return false;
  }

  AgentView& view_;
  const std::atomic<bool>& over_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Question> waiting_;
  bool ended_ = false;
  std::thread thread_;
};

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  if (!file.flush()) bad_input("cannot write {}", one_line(path));
}

/// The end of a run, on standard output and as an exit code.
void tell_end(const Options& options, const std::string& question, const AgentAnswer& answer,
              const std::vector<AgentEvent>& events) {
  if (!options.report.empty()) write_file(options.report, agent_report(question, events, options.prices));
  if (options.json) {
    nlohmann::ordered_json object = {
        {"event", "end"},
        {"answer", answer.error.empty() ? nlohmann::ordered_json(answer.text) : nullptr},
        {"error", answer.error},
        {"seconds", answer.seconds},
        {"rounds", answer.rounds},
        {"requests", answer.requests},
        {"calls", answer.calls},
        {"prompt_tokens", answer.prompt_tokens},
        {"cached_tokens", answer.cached_tokens},
        {"reply_tokens", answer.reply_tokens},
        {"structure_tokens", answer.structure_tokens}};
    write_out(object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  } else if (answer.error.empty()) {
    // A terminal would obey what a model or a page wrote; a pipe gets the answer as it is.
    write_out((isatty(STDOUT_FILENO) == 1 ? shown_lines(answer.text) : answer.text) + "\n");
  }
  if (answer.cancelled) throw Exit{kInterruptedExit};
  if (!answer.error.empty()) bad_input("{}", answer.error);
}

/// Keeps an event and prints it.
void tell(const Options& options, const AgentEvent& event, std::vector<AgentEvent>& events, AgentView& view) {
  events.push_back(event);
  if (options.json) {
    view.print(agent_event_json(event) + "\n");
  } else {
    view.add(event);
  }
}

void ask(Options& options) {
  if (options.question.empty()) fail(ErrorKind::kUsage, "the question is empty: give it with -q TEXT");
  AgentOptions& agent_options = options.agent;
  agent_options.strategy = agent_strategy(options.strategy);
  agent_options.tools = options.tools;
  agent_options.corpus = options.corpus;
  agent_options.root = options.root;
  agent_options.streamed = !options.whole_plans;
  if (!options.examples.empty()) agent_options.examples = read_text(options.examples);
  agent_options.temperature = options.common.sampling.temperature;
  agent_options.seed = options.common.sampling.seed;
  agent_options.max_time = std::chrono::milliseconds(static_cast<int64_t>(options.max_seconds * 1000));
  agent_options.stragglers = std::chrono::milliseconds(static_cast<int64_t>(options.stragglers * 1000));

  std::optional<Model> model;
  std::optional<Engine> engine;
  if (agent_options.endpoint.empty()) {
    if (options.common.model.empty())
      fail(ErrorKind::kUsage, "a model is missing: name one as MODEL, or a server with --endpoint");
    agent_options.recipe = chosen_recipe(options.common);
    model = load_model(options.common.model, options.common.load_options({agent_options.recipe}));
    engine.emplace(*model, EngineOptions{.max_batch = 4, .threads = options.common.threads});
    if (const auto drafts = load_draft_model(options.common, agent_options.recipe))
      engine->set_draft_model(*drafts);
    engine->prepare(agent_options.recipe, show_measuring);
    end_progress();
    agent_options.model = &*model;
    agent_options.engine = &*engine;
  } else {
    if (!options.common.model.empty()) fail(ErrorKind::kUsage, "MODEL and --endpoint exclude each other");
    const char* const key = std::getenv(kKeyVariable);
    if (key) agent_options.api_key = key;
  }

  const bool terminal = isatty(STDERR_FILENO) == 1 && !options.json;
  AgentView view(terminal);
  std::atomic<bool> over = false;
  std::vector<AgentEvent> events;
  std::optional<Questions> questions;
  if (isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1) {
    questions.emplace(view, over);
    agent_options.ask = [&questions](const std::string& tool, const std::string& arguments,
                                     std::function<void(bool)> answer) {
      questions->add(tool, arguments, std::move(answer));
    };
  }
  // The servers and commands that an agent runs must not outlive it, so whatever asks this program to end is
  // heard. How they end is seen only if nobody has had SIGCHLD ignored.
  signal(SIGCHLD, SIG_DFL);
  const InterruptGuard guard(true);
  Agent agent(agent_options);
  for (const std::string& warning : agent.warnings()) say("verbatim: warning: {}\n", one_line(warning));
  if (interrupted()) throw Exit{kInterruptedExit};  // while the servers began
  std::thread ticker([&] {
    bool told = false;
    while (!over) {
      std::this_thread::sleep_for(kTick);
      if (!over) view.draw();
      if (interrupted() && !std::exchange(told, true)) agent.cancel();
    }
  });
  const auto stop = [&] {
    over = true;
    ticker.join();
  };
  AgentAnswer answer;
  try {
    answer = agent.ask(
        options.question, [&](const AgentEvent& event) { tell(options, event, events, view); },
        options.record);
  } catch (...) {
    stop();
    questions.reset();
    throw;
  }
  stop();
  questions.reset();
  tell_end(options, options.question, answer, events);
}

/// The name of the model that a table of prices knows it by.
std::string priced_model(const Options& options) {
  if (!options.agent.endpoint_model.empty()) return options.agent.endpoint_model;
  const std::filesystem::path path = options.common.model;
  return path.empty() ? "default" : (path.has_filename() ? path : path.parent_path()).filename().string();
}

void run(Options& options) {
  // Before anything is asked and paid for: a run whose report cannot be written would be lost.
  if (!options.price_table.empty())
    options.prices = read_agent_prices(options.price_table, priced_model(options));
  if (options.replay.empty()) return ask(options);
  AgentView view(false);
  std::vector<AgentEvent> events;
  std::string question;
  const AgentAnswer answer = replay_agent(
      options.replay, question, [&](const AgentEvent& event) { tell(options, event, events, view); });
  tell_end(options, question, answer, events);
}

/// How this program's own engine decodes; a server has its own settings for all but the last two.
void add_model_options(Command command, CommonOptions& options) {
  const char* const decoding = "Decoding";
  command
      .add_option("--recipe", options.recipe,
                  "A name from `verbatim recipes` or a .toml file; without it auto")
      .group(decoding);
  command
      .add_option("--draft-model", options.draft_model,
                  "The model that recipes with a small model draft with")
      .type_name("MODEL")
      .group(decoding);
  command.add_option("--threads", options.threads, "Threads to compute with; without it one per core")
      .group(decoding)
      .range(1, 4096);
  add_portable(command).group(decoding);
  command
      .add_option("--temperature", options.sampling.temperature,
                  "0 takes the likeliest token, more is more varied")
      .group(decoding)
      .show_default()
      .range(0.0, 10.0);
  command.add_option("--seed", options.sampling.seed, "The same seed gives the same text")
      .group(decoding)
      .show_default();
}

void add_limits(Command command, Options& options) {
  const auto add = [&](const char* name, auto& value, const char* what) {
    return command.add_option(name, value, what).group("Limits").show_default();
  };
  constexpr int64_t kMany = int64_t{1} << 40;
  add("--max-rounds", options.agent.max_rounds,
      "Plans, or turns of the other strategies; 0: 3 plans, 20 turns")
      .range(int64_t{0}, int64_t{1000});
  add("--max-tokens", options.agent.max_tokens, "Tokens of prompts and replies, in all")
      .range(int64_t{1}, kMany);
  add("--max-reply", options.agent.max_reply_tokens,
      "Tokens of one reply; 0: 8192 of MODEL, 2048 of a server")
      .range(int64_t{0}, int64_t{1} << 24);
  add("--max-calls", options.agent.max_calls, "Calls of tools, in all").range(int64_t{1}, int64_t{1'000'000});
  add("--max-seconds", options.max_seconds, "Seconds, in all").range(0.001, 1e6);
  add("--stragglers", options.stragglers,
      "Seconds after a plan's end in which its calls may end; 0: any time")
      .range(0.0, 1e6);
  add("--concurrency", options.agent.concurrency, "Calls at a time").range(int64_t{1}, int64_t{10'000});
}

}  // namespace

void add_agent(Command program) {
  auto options = std::make_shared<Options>();
  Command command = program.add_command("agent", "Answer a question with tools, called side by side");
  command.add_option("MODEL", options->common.model,
                     "A directory in Hugging Face layout, a .gguf or a .vbt file");
  Option question = command.add_option("-q,--question", options->question, "The question");
  command
      .add_option("--endpoint", options->agent.endpoint,
                  "An OpenAI-compatible server in place of MODEL; OPENAI_API_KEY holds its key")
      .type_name("URL");
  command.add_option("--endpoint-model", options->agent.endpoint_model, "The server's name of the model")
      .type_name("NAME");
  command.add_option("--strategy", options->strategy, "compiler, react, react-careful or parallel")
      .show_default();
  command
      .add_option("--examples", options->examples,
                  "A file with questions and their plans, which the model sees")
      .type_name("FILE");
  command.add_flag("--whole-plans", options->whole_plans,
                   "Start calls when the plan is whole, not while it is written");
  const char* const tools = "Tools";
  command.add_option("--tools", options->tools, "A file of commands, addresses and servers of tools")
      .type_name("FILE")
      .group(tools);
  command.add_option("--corpus", options->corpus, "What the tool `search` searches: JSON lines, or SQLite")
      .type_name("FILE")
      .group(tools);
  command.add_option("--root", options->root, "The folder that the tool `read_file` reads below")
      .type_name("DIR")
      .group(tools);
  command.add_flag("--yes", options->agent.allow_all, "Allow the calls that a person would be asked about")
      .group(tools);
  add_limits(command, *options);
  add_model_options(command, options->common);
  command.add_flag("--json", options->json, "Print what happens as JSON, a line for each event");
  command.add_option("--record", options->record, "Write a file from which --replay does the run again")
      .type_name("FILE");
  Option replay =
      command.add_option("--replay", options->replay, "Do a recorded run again, without model and tools")
          .type_name("FILE");
  replay.excludes(question);
  command.add_option("--report", options->report, "Write a page in HTML that shows the run")
      .type_name("FILE");
  command
      .add_option("--prices", options->price_table,
                  "A file of prices by model, for the report; --endpoint-model names the model of a replay")
      .type_name("FILE");
  command
      .add_option("--prompt-price", options->prices.prompt,
                  "The price of a million tokens of prompts, for the report")
      .range(0.0, 1e9);
  command
      .add_option("--reply-price", options->prices.reply,
                  "The price of a million tokens of replies, for the report")
      .range(0.0, 1e9);
  command.footer(
      "Examples:\n"
      "  verbatim agent --endpoint http://localhost:8080/v1 --corpus pages.jsonl -q 'Who is older, Ann or "
      "Bob?'\n"
      "  verbatim agent models/target --root docs -q 'What does agent.md say?'\n"
      "  verbatim agent --replay run.jsonl --report run.html");
  command.callback([options] { run(*options); });
}

}  // namespace verbatim::app
