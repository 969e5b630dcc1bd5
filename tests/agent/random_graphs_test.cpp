#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "agent/exec/executor.h"
#include "agent/loop/simulated_loop.h"
#include "agent/simulated_tool.h"

namespace verbatim::agent {
namespace random_graphs_test {
namespace {

using test::SimulatedTool;

constexpr Duration kSecond = std::chrono::seconds(1);

/// What a random task does, decided beforehand.
struct Fate {
  Duration time{0};
  int failures = 0;  ///< attempts that fail before one succeeds
  bool broken = false;
  bool hangs = false;
  bool deaf = false;
};

/// Runs one random graph in up to three plans and checks everything about it.
void run_random_graph(uint64_t seed) {
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t most) { return static_cast<int64_t>(random() % most); };
  const auto chance = [&](int percent) { return below(100) < percent; };

  SimulatedLoop loop;
  std::map<int64_t, Fate> fates;
  std::map<int64_t, int> attempts;
  std::map<int64_t, int> successes;
  ExecutorOptions options;
  options.concurrency = chance(50) ? 1000 : 1 + static_cast<int>(below(4));
  if (chance(20)) options.stragglers = below(20) * kSecond;
  const bool idempotent = chance(50);
  ToolEntry entry;
  entry.policy = Policy::kAllow;
  entry.idempotent = idempotent;
  entry.limits = {.time = 10 * kSecond,
                  .retries = static_cast<int>(below(3)),
                  .back_off = kSecond / 2,
                  .concurrency = 1000};
  if (chance(30)) entry.limits.hedge_after = 3 * kSecond;
  auto tool = std::make_shared<SimulatedTool>(
      loop,
      ToolDeclaration{.name = "t",
                      .parameters = {{"type", "object"}, {"properties", {{"x", Json::object()}}}}},
      [&](const Json& arguments) {
        const auto id = arguments["x"][0].get<int64_t>();
        const Fate& fate = fates.at(id);
        const int attempt = attempts[id]++;
        SimulatedTool::Behaviour behaviour{.time = fate.time, .hangs = fate.hangs, .deaf = fate.deaf};
        if (fate.broken || attempt < fate.failures) {
          behaviour.result = ToolResult::failure("failed", !fate.broken);
        } else {
          Json sum = id;  // a number made of the inputs' numbers tells whether each got the right ones
          for (size_t i = 1; i < arguments["x"].size(); ++i)
            sum = sum.get<int64_t>() * 31 + arguments["x"][i].get<int64_t>();
          behaviour.result = ToolResult::of(sum.get<int64_t>() % 1'000'003);
        }
        return behaviour;
      });
  entry.tool = tool;
  ToolSet tools;
  tools.add(entry);
  const std::vector<ToolDeclaration> declarations = tools.declarations();

  std::map<int64_t, int> settled_events;
  bool out_of_order = false;
  Executor executor(
      loop, tools, options, {.event = [&](TaskEvent event, const Task& task, const std::string&) {
        if (event == TaskEvent::kSettled) {
          ++settled_events[task.plan.id];
          if (task.state == TaskState::kDone) ++successes[task.plan.id];
        }
        if (event == TaskEvent::kStarted) {
          for (const int64_t input : task.plan.inputs) {
            const Task& other = executor.tasks().at(input);
            out_of_order = out_of_order || other.state != TaskState::kDone || other.ended > loop.now();
          }
        }
      }});

  int64_t last = 0;
  int rounds = 1 + static_cast<int>(below(3));
  bool finished = false;
  std::unique_ptr<PlanParser> parser;
  std::function<void()> plan = [&] {
    std::set<int64_t> known;
    for (const auto& [id, task] : executor.tasks()) known.insert(id);
    parser = std::make_unique<PlanParser>(
        declarations, known,
        PlanParser::Hooks{.task = [&](PlannedTask task) { executor.add(std::move(task)); }});
    const int64_t shape = below(4);  // chain, wide, diamonds, anything
    const int64_t first = last + 1;
    const int64_t count = below(14);
    Duration at{0};
    std::string text;
    for (int64_t i = 0; i < count; ++i) {
      last += 1 + (chance(10) ? below(3) : 0);  // numbers may leave gaps
      fates[last] = {.time = below(5) * kSecond,
                     .failures = chance(15) ? static_cast<int>(1 + below(3)) : 0,
                     .broken = chance(5),
                     .hangs = chance(4),
                     .deaf = chance(2)};
      std::vector<int64_t> inputs;
      std::vector<int64_t> earlier;
      for (const auto& [id, fate] : fates) {
        if (id < last) earlier.push_back(id);
      }
      if (!earlier.empty()) {
        if (shape == 0) inputs = {earlier.back()};
        if (shape == 1 && chance(10)) inputs = {earlier.front()};
        if (shape == 2) inputs = {earlier[earlier.size() / 2], earlier.back()};
        if (shape == 3 || (last == first && chance(50))) {
          for (int64_t k = below(4); k > 0; --k)
            inputs.push_back(earlier[static_cast<size_t>(below(earlier.size()))]);
        }
      }
      text = fmt::format("{}. t([{}", last, last);
      for (const int64_t input : inputs)
        text += chance(50) ? fmt::format(", ${}", input) : fmt::format(", \"${{{}}}\"", input);
      text += "])\n";
      at += below(3) * kSecond / 4;
      loop.after(at, [&, text] { parser->add(text); });
    }
    loop.after(at + kSecond / 2, [&] {
      parser->add("join()");
      parser->end();
      executor.when_settled([&] {
        if (--rounds > 0) {
          executor.reopen();
          plan();
        } else {
          executor.when_idle([&] { finished = true; });
        }
      });
      executor.close();
    });
  };
  plan();
  bool called_off = false;
  if (chance(20)) {
    called_off = true;
    loop.after(below(12) * kSecond, [&] { executor.cancel(1 + below(static_cast<uint64_t>(last) + 1)); });
  }
  if (chance(5)) {
    called_off = true;
    loop.after(below(12) * kSecond, [&] { executor.cancel_all(); });
  }
  loop.run();

  ASSERT_TRUE(finished);
  EXPECT_FALSE(out_of_order);
  EXPECT_EQ(executor.running(), 0u);
  EXPECT_EQ(tool->running, 0);
  EXPECT_EQ(loop.waiting(), 0u);
  std::map<int64_t, int64_t> right;
  for (const auto& [id, task] : executor.tasks()) {
    SCOPED_TRACE(id);
    ASSERT_TRUE(settled(task.state));
    EXPECT_EQ(settled_events[id], 1);
    EXPECT_LE(successes[id], 1);
    EXPECT_LE(attempts[id], entry.limits.retries + 1 + (task.hedged ? 1 : 0));
    bool inputs_done = true;
    for (const int64_t input : task.plan.inputs)
      inputs_done = inputs_done && executor.tasks().at(input).state == TaskState::kDone;
    if (!inputs_done) {
      EXPECT_EQ(attempts[id], 0);
      EXPECT_NE(task.state, TaskState::kDone);
      continue;
    }
    EXPECT_NE(task.state, TaskState::kSkipped);
    EXPECT_EQ(attempts[id], task.attempts);
    const Fate& fate = fates.at(id);
    const bool good = !fate.broken && !fate.hangs && fate.failures <= entry.limits.retries;
    if (good && !called_off && options.stragglers == Duration(0)) {
      EXPECT_EQ(task.state, TaskState::kDone);
      const int needed = fate.failures + 1;
      // A call beside the first one takes the place of a further attempt, or is one too many if none was
      // needed; with few calls at a time it may start beside a later one.
      if (!task.hedged) {
        EXPECT_EQ(attempts[id], needed);
      } else if (options.concurrency == 1000) {
        EXPECT_EQ(attempts[id], std::max(2, needed));
      } else {
        EXPECT_TRUE(attempts[id] == needed || attempts[id] == needed + 1);
      }
    }
    if (task.state == TaskState::kDone) {
      int64_t sum = id;
      const Json& arguments = task.arguments["x"];
      size_t i = 1;
      const Term& list =
          task.plan.arguments.kind == Term::Kind::kObject ? task.plan.arguments.parts[0] : Term();
      for (; i < arguments.size(); ++i) {
        const int64_t value = right.at(list.parts[i].id);
        EXPECT_EQ(arguments[i], value);
        sum = sum * 31 + value;
      }
      right[id] = sum % 1'000'003;
      EXPECT_EQ(task.result, right[id]);
      EXPECT_FALSE(fates[id].hangs || fates[id].broken);
    }
    const bool greedy = options.concurrency == 1000 && task.started >= Time(0);
    if (greedy) {
      Time from = task.added;
      for (const int64_t input : task.plan.inputs) from = std::max(from, executor.tasks().at(input).ended);
      EXPECT_EQ(task.started, from);
    }
  }
}

TEST(RandomGraphs, RunEachTaskOnceAndNeverBeforeItsInputs) {
  for (uint64_t seed = 0; seed < 10'000 && !testing::Test::HasFailure(); ++seed) run_random_graph(seed);
}

}  // namespace
}  // namespace random_graphs_test
}  // namespace verbatim::agent
