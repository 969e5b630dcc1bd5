#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "agent/exec/executor.h"
#include "agent/loop/real_loop.h"
#include "agent/loop/simulated_loop.h"
#include "agent/run/run.h"
#include "app/text_io.h"
#include "bench/agent_game.h"
#include "bench/agent_model.h"
#include "bench/agent_plans.h"
#include "bench/commands.h"

namespace verbatim::bench {

namespace {

using agent::RunStrategy;

struct Options {
  std::string data;
  int64_t most = 0;  // questions of each set; 0: all
  agent::ScriptedRates rates;
  AgentTimes times;
  bool simulated = false;  // the simulated clock alone
  std::string plans;       // the model that writes plans; empty: none
  bool json = false;
};

/// The means over the questions of a set.
struct Row {
  double seconds = 0;
  double prompt_tokens = 0;
  double reply_tokens = 0;
  double worst = 0;    // share by which a run differed most from the formulas
  double printed = 0;  // seconds by D.3 as it is printed, where it is one of plans
  double formula = 0;  // seconds by D.1, D.2 or D.3 as corrected
  int64_t count = 0;
};

/// The seconds that a compiler's run takes by D.2 and D.3 as corrected: each call begins when its line and
/// its inputs are there, and the joiner when the plan and all calls are.
struct Prediction {
  double seconds = 0;
  double printed = 0;
};

Prediction predicted(const Options& options, const AgentQuestion& question, bool streamed,
                     int64_t plan_prompt, int64_t join_prompt, const std::string& joiner) {
  const std::string plan = scripted_plan(question);
  const double begin = static_cast<double>(plan_prompt) / options.rates.prompt_tokens_per_second;
  constexpr size_t kBytesPerToken = 4;
  const auto written = [&](size_t offset) {  // when the byte is there
    return begin + static_cast<double>(offset / kBytesPerToken + 1) / options.rates.tokens_per_second;
  };
  const double plan_end = written(plan.size() - 1);
  std::vector<double> ends;
  double last = plan_end;
  size_t offset = 0;
  for (const AgentStep& step : question.steps) {
    offset = plan.find('\n', offset);
    double start = streamed ? written(offset) : plan_end;
    ++offset;
    for (const int64_t input : step.inputs) start = std::max(start, ends[static_cast<size_t>(input) - 1]);
    ends.push_back(start + tool_seconds(options.times, step.tool, step.argument));
    last = std::max(last, ends.back());
  }
  const double join =
      static_cast<double>(join_prompt) / options.rates.prompt_tokens_per_second +
      static_cast<double>(agent::ScriptedEndpoint::tokens_of(joiner) + 1) / options.rates.tokens_per_second;
  return {.seconds = last + join, .printed = std::max(plan_end, ends.back()) + join};
}

Row measure(const Options& options, const std::vector<AgentQuestion>& questions, RunStrategy strategy,
            bool streamed, size_t shots, int64_t branch = 0) {
  Row row;
  agent::RunOptions run_options;
  run_options.strategy = strategy;
  run_options.streamed = streamed;
  run_options.max_rounds = 100;
  run_options.max_tokens = 10'000'000;
  run_options.max_time = std::chrono::hours(10);
  run_options.examples = scripted_examples(questions, shots, strategy);
  for (const AgentQuestion& question : questions) {
    if (options.most > 0 && row.count >= options.most) break;
    if (branch != 0 && question.branch != branch) continue;
    agent::SimulatedLoop loop;
    std::vector<int64_t> prompts;
    std::string last_reply;
    int64_t replies = 0;
    agent::ScriptedEndpoint endpoint(loop, options.rates, [&](const agent::ModelRequest& request) {
      int64_t tokens = 0;
      for (const agent::ModelMessage& message : request.messages)
        tokens += agent::ScriptedEndpoint::tokens_of(message.content);
      prompts.push_back(tokens);
      last_reply = scripted_reply(question, strategy, request);
      replies += agent::ScriptedEndpoint::tokens_of(last_reply);
      return last_reply;
    });
    agent::ToolSet tools;
    for (const char* const name : {"search", "math"}) {
      tools.add({.tool = timed_tool(loop, name, options.times),
                 .policy = agent::Policy::kAllow,
                 .limits = {.concurrency = 64}});
    }
    agent::RunResult result;
    agent::Run run(loop, endpoint, tools, run_options, question.text,
                   {.ended = [&](const agent::RunResult& end) { result = end; }});
    loop.run();
    if (!result.error.empty()) throw Error(ErrorKind::kBadInput, "a scripted run failed: " + result.error);
    row.seconds += agent::in_seconds(result.time);
    row.prompt_tokens += static_cast<double>(result.prompt_tokens);
    row.reply_tokens += static_cast<double>(result.reply_tokens);
    ++row.count;
    if (strategy == RunStrategy::kCompiler) {
      const Prediction by_formula =
          predicted(options, question, streamed, prompts.at(0), prompts.at(1), last_reply);
      row.printed += by_formula.printed;
      row.formula += by_formula.seconds;
      row.worst = std::max(row.worst, std::fabs(agent::in_seconds(result.time) / by_formula.seconds - 1));
    }
    if (strategy == RunStrategy::kReact || strategy == RunStrategy::kReactCareful) {  // D.1, and the answer
      int64_t read = 0;
      for (const int64_t tokens : prompts) read += tokens;
      double seconds = static_cast<double>(read) / options.rates.prompt_tokens_per_second +
                       static_cast<double>(replies + 1) / options.rates.tokens_per_second;
      for (const AgentStep& step : question.steps)
        seconds += tool_seconds(options.times, step.tool, step.argument);
      row.formula += seconds;
      row.worst = std::max(row.worst, std::fabs(agent::in_seconds(result.time) / seconds - 1));
    }
  }
  for (double* const sum : {&row.seconds, &row.prompt_tokens, &row.reply_tokens, &row.printed, &row.formula})
    *sum /= static_cast<double>(std::max<int64_t>(row.count, 1));
  return row;
}

/// What the thesis measured (Tables 6.1, 6.2 and D.1).
struct Published {
  double speedup;
  double input;
  double streaming;
  int64_t tokens_react;  // of prompts
  int64_t tokens_compiler;
};

/// A plan over ReAct as measured and by formula.
struct Speedup {
  double measured = 0;
  double formula = 0;
};

/// The greatest speedup (D.5): the model takes no time, and all calls the same. The formula divides their
/// number by that of the longest chain of them, which is the thesis's N where no call uses another.
Speedup greatest(Options options, const std::vector<AgentQuestion>& questions, size_t shots) {
  options.rates = {.tokens_per_second = 1e9, .prompt_tokens_per_second = 1e12};
  options.times = {.search = 1, .slowest = 1, .math = 1};
  double calls = 0;
  double chains = 0;
  int64_t count = 0;
  for (const AgentQuestion& question : questions) {
    if (options.most > 0 && count++ >= options.most) break;
    std::vector<double> depth;
    double longest = 0;
    for (const AgentStep& step : question.steps) {
      depth.push_back(1);
      for (const int64_t input : step.inputs)
        depth.back() = std::max(depth.back(), depth[static_cast<size_t>(input) - 1] + 1);
      longest = std::max(longest, depth.back());
    }
    calls += static_cast<double>(question.steps.size());
    chains += longest;
  }
  return {.measured = measure(options, questions, RunStrategy::kReactCareful, true, shots).seconds /
                      measure(options, questions, RunStrategy::kCompiler, false, shots).seconds,
          .formula = calls / chains};
}

/// The least speedup (D.6): calls take no time, so what is left is what the model reads and writes.
Speedup least(Options options, const std::vector<AgentQuestion>& questions, size_t shots) {
  options.times = {.search = 0, .slowest = 0, .math = 0};
  const Row react = measure(options, questions, RunStrategy::kReactCareful, true, shots);
  const Row whole = measure(options, questions, RunStrategy::kCompiler, false, shots);
  return {.measured = react.seconds / whole.seconds, .formula = react.formula / whole.formula};
}

void measure_set(const Options& options, AgentSet set, const char* name, size_t shots,
                 const Published& published) {
  const std::vector<AgentQuestion> questions = agent_questions(set, options.data);
  const Row react = measure(options, questions, RunStrategy::kReactCareful, true, shots);
  const Row parallel = measure(options, questions, RunStrategy::kParallel, true, shots);
  const Row whole = measure(options, questions, RunStrategy::kCompiler, false, shots);
  const Row compiler = measure(options, questions, RunStrategy::kCompiler, true, shots);
  const Speedup by_d4{.measured = react.seconds / whole.seconds, .formula = react.formula / whole.formula};
  const Speedup by_d5 = greatest(options, questions, shots);
  const Speedup by_d6 = least(options, questions, shots);
  if (options.json) {
    const auto pair = [](const Speedup& speedup) {
      return nlohmann::ordered_json{{"measured", speedup.measured}, {"formula", speedup.formula}};
    };
    const nlohmann::ordered_json object = {
        {"set", name},
        {"questions", compiler.count},
        {"d4", pair(by_d4)},
        {"d5", pair(by_d5)},
        {"d6", pair(by_d6)},
        {"seconds",
         {{"react", react.seconds},
          {"parallel", parallel.seconds},
          {"whole_plans", whole.seconds},
          {"compiler", compiler.seconds}}},
        {"speedup", react.seconds / compiler.seconds},
        {"prompt_tokens",
         {{"react", react.prompt_tokens},
          {"parallel", parallel.prompt_tokens},
          {"compiler", compiler.prompt_tokens}}},
        {"input_reduced", react.prompt_tokens / compiler.prompt_tokens},
        {"streaming", whole.seconds / compiler.seconds},
        {"thesis",
         {{"speedup", published.speedup},
          {"input_reduced", published.input},
          {"streaming", published.streaming},
          {"prompt_tokens", {{"react", published.tokens_react}, {"compiler", published.tokens_compiler}}}}},
        {"d3_as_printed", compiler.printed},
        {"worst_against_formula", std::max({react.worst, whole.worst, compiler.worst})}};
    app::write_out(object.dump() + "\n");
    return;
  }
  app::write_out(
      fmt::format("{}: {} questions\n  seconds: react {:.2f}, parallel {:.2f}, compiler {:.2f}, {:.2f} with "
                  "whole plans\n",
                  name, compiler.count, react.seconds, parallel.seconds, compiler.seconds, whole.seconds));
  app::write_out(fmt::format(
      "  over react {:.2f} times (thesis {:.2f}), parallel {:.2f}; streaming gains {:.3f} (thesis {:.2f})\n",
      react.seconds / compiler.seconds, published.speedup, react.seconds / parallel.seconds,
      whole.seconds / compiler.seconds, published.streaming));
  app::write_out(
      fmt::format("  tokens in: react {:.0f}, parallel {:.0f}, compiler {:.0f}: {:.1f} times less (thesis "
                  "{:.1f}); out {:.0f}, {:.0f}, {:.0f}\n",
                  react.prompt_tokens, parallel.prompt_tokens, compiler.prompt_tokens,
                  react.prompt_tokens / compiler.prompt_tokens, published.input, react.reply_tokens,
                  parallel.reply_tokens, compiler.reply_tokens));
  app::write_out(fmt::format(
      "  against D.1, D.2 and D.3 as corrected: at most {:.4f} % off; D.3 as printed says {:.2f} s\n",
      100 * std::max({react.worst, whole.worst, compiler.worst}), compiler.printed));
  app::write_out(fmt::format(
      "  whole plans over react {:.3f} times (D.4: {:.3f}), with a model that takes no time {:.3f} (D.5: "
      "{:.3f}), "
      "with calls that take none {:.3f} (D.6: {:.3f})\n",
      by_d4.measured, by_d4.formula, by_d5.measured, by_d5.formula, by_d6.measured, by_d6.formula));
  if (set != AgentSet::kParallel) return;
  for (int64_t branch = 2; branch <= 5; ++branch) {
    app::write_out(
        fmt::format("  {} side by side: react {:.2f} s, compiler {:.2f} s\n", branch,
                    measure(options, questions, RunStrategy::kReactCareful, true, shots, branch).seconds,
                    measure(options, questions, RunStrategy::kCompiler, true, shots, branch).seconds));
  }
}

/// What the orchestrator itself takes, on the real clock: N calls of 50 ms side by side.
void measure_overhead(const Options& options) {
  for (const int64_t count : {1, 2, 4, 8, 16, 32}) {
    agent::RealLoop loop;
    AgentTimes times;
    times.math = 0.05;
    agent::ToolSet tools;
    tools.add({.tool = timed_tool(loop, "math", times),
               .policy = agent::Policy::kAllow,
               .limits = {.concurrency = 64}});
    double least = 1e9;
    constexpr int kRuns = 5;
    for (int run = 0; run < kRuns; ++run) {
      agent::Executor executor(loop, tools, {}, {});
      const auto begin = std::chrono::steady_clock::now();
      loop.post([&] {
        const std::vector<agent::ToolDeclaration> declarations = tools.declarations();
        agent::PlanParser parser(declarations, {},
                                 {.task = [&](agent::PlannedTask task) { executor.add(std::move(task)); }});
        for (int64_t id = 1; id <= count; ++id) parser.add(fmt::format("{}. math(\"1 + {}\")\n", id, id));
        parser.add("join()\n");
        executor.when_settled([&] { loop.stop(); });
        executor.close();
      });
      loop.run();
      least =
          std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    const double milliseconds = (least - times.math) * 1000;
    if (options.json) {
      app::write_out(nlohmann::ordered_json{{"calls", count},
                                            {"overhead_ms", milliseconds},
                                            {"overhead_ms_a_call", milliseconds / static_cast<double>(count)}}
                         .dump() +
                     "\n");
    } else {
      app::write_out(
          fmt::format("{:2} calls side by side: {:.3f} ms more than one call takes, {:.3f} ms a call\n",
                      count, milliseconds, milliseconds / static_cast<double>(count)));
    }
  }
}

void run(const Options& options) {
  if (!options.plans.empty()) return measure_plans(options.plans, options.data, options.most, options.json);
  if (!options.simulated) measure_overhead(options);
  measure_games(options.rates, options.json);
  if (options.data.empty()) return;
  measure_set(
      options, AgentSet::kHotpot, "HotpotQA comparison", 3,
      {.speedup = 1.80, .input = 2.2, .streaming = 1.01, .tokens_react = 2900, .tokens_compiler = 1300});
  measure_set(
      options, AgentSet::kMovies, "Movie recommendation", 1,
      {.speedup = 3.74, .input = 7.1, .streaming = 1.03, .tokens_react = 20000, .tokens_compiler = 2800});
  measure_set(
      options, AgentSet::kParallel, "ParallelQA", 5,
      {.speedup = 2.15, .input = 5.0, .streaming = 1.30, .tokens_react = 46000, .tokens_compiler = 9200});
}

}  // namespace

void add_agent(app::Command program) {
  auto options = std::make_shared<Options>();
  app::Command command = program.add_command(
      "agent", "How fast the agent is around a scripted model, beside LLMCompiler's own figures");
  command
      .add_option("--data", options->data,
                  "The folder of LLMCompiler's data sets; without it the overhead and the Game of 24 alone")
      .type_name("DIR");
  command.add_option("--questions", options->most, "Questions of each set; 0: all, of plans 100")
      .range(int64_t{0}, int64_t{1'000'000})
      .show_default();
  const std::vector<app::Option> simulation = {
      command.add_option("--rate", options->rates.tokens_per_second, "Tokens that the model writes a second")
          .range(0.001, 1e6)
          .show_default(),
      command
          .add_option("--prompt-rate", options->rates.prompt_tokens_per_second,
                      "Tokens that it reads a second")
          .range(0.001, 1e9)
          .show_default(),
      command.add_option("--search", options->times.search, "Seconds of a search, the mean")
          .range(0.0, 1e4)
          .show_default(),
      command.add_option("--slowest", options->times.slowest, "Seconds of the slowest of eight, the mean")
          .range(0.0, 1e4)
          .show_default(),
      command.add_option("--math", options->times.math, "Seconds of a computation")
          .range(0.0, 1e4)
          .show_default(),
      command.add_flag("--simulated", options->simulated, "Leave out what takes real time, the overhead")};
  app::Option plans =
      command.add_option("--plans", options->plans, "Check plans that this model writes, and nothing else")
          .type_name("MODEL");
  for (const app::Option& option : simulation) plans.excludes(option);
  command.add_flag("--json", options->json, "Print JSON, a line for each set");
  command.footer(
      "The sets run on a simulated clock, the overhead on the real one.\n"
      "\n"
      "Example:\n"
      "  verbatim-bench agent --data LLMCompiler/datasets\n"
      "  verbatim-bench agent --data LLMCompiler/datasets --plans models/target");
  command.callback([options] { run(*options); });
}

}  // namespace verbatim::bench
