#include "bench/agent_game.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "agent/loop/simulated_loop.h"
#include "agent/run/run.h"
#include "agent/tools/instant_tool.h"
#include "app/text_io.h"
#include "verbatim/error.h"

namespace verbatim::bench {

namespace {

using agent::Json;

constexpr size_t kKept = 5;       // states for the next plan
constexpr int64_t kPrompt = 300;  // tokens that a proposer or an evaluator reads
constexpr double kTarget = 24;

/// A fraction, exact.
struct Number {
  int64_t top = 0;
  int64_t bottom = 1;
  bool operator<(const Number& other) const { return top * other.bottom < other.top * bottom; }
  bool is_target() const { return bottom != 0 && top == static_cast<int64_t>(kTarget) * bottom; }
};

Number reduced(int64_t top, int64_t bottom) {
  if (bottom < 0) {
    top = -top;
    bottom = -bottom;
  }
  const int64_t divisor = std::max<int64_t>(std::gcd(top, bottom), 1);
  return {top / divisor, bottom / divisor};
}

std::string text_of(const Number& number) {
  return number.bottom == 1 ? fmt::format("{}", number.top) : fmt::format("{}/{}", number.top, number.bottom);
}

Number number_of(const std::string& text) {
  const size_t slash = text.find('/');
  return {std::stoll(text), slash == std::string::npos ? 1 : std::stoll(text.substr(slash + 1))};
}

std::vector<Number> numbers_of(const std::string& text) {
  std::vector<Number> numbers;
  for (size_t at = 0; (at = text.find_first_not_of(' ', at)) != std::string::npos;) {
    const size_t end = std::min(text.find(' ', at), text.size());
    numbers.push_back(number_of(text.substr(at, end - at)));
    at = end;
  }
  return numbers;
}

/// One operation on two of the numbers.
struct Thought {
  std::string operation;
  std::vector<Number> left;
};

std::vector<Thought> thoughts_of(std::vector<Number> numbers) {
  std::sort(numbers.begin(), numbers.end());
  std::vector<Thought> thoughts;
  std::set<std::string> known;
  for (size_t i = 0; i < numbers.size(); ++i) {
    for (size_t k = 0; k < numbers.size(); ++k) {
      if (i == k) continue;
      const Number& a = numbers[i];
      const Number& b = numbers[k];
      for (const char sign : {'+', '-', '*', '/'}) {
        if ((sign == '+' || sign == '*') && k < i) continue;
        if (sign == '/' && b.top == 0) continue;
        const Number result = sign == '+' ? reduced(a.top * b.bottom + b.top * a.bottom, a.bottom * b.bottom)
                              : sign == '-'
                                  ? reduced(a.top * b.bottom - b.top * a.bottom, a.bottom * b.bottom)
                              : sign == '*' ? reduced(a.top * b.top, a.bottom * b.bottom)
                                            : reduced(a.top * b.bottom, a.bottom * b.top);
        Thought thought{.operation = fmt::format("{}{}{}={}", text_of(a), sign, text_of(b), text_of(result)),
                        .left = {result}};
        for (size_t n = 0; n < numbers.size(); ++n) {
          if (n != i && n != k) thought.left.push_back(numbers[n]);
        }
        std::sort(thought.left.begin(), thought.left.end());
        if (known.insert(thought.operation).second) thoughts.push_back(std::move(thought));
      }
    }
  }
  return thoughts;
}

bool reachable(const std::vector<Number>& numbers) {
  if (numbers.size() == 1) return numbers[0].is_target();
  for (const Thought& thought : thoughts_of(numbers)) {
    if (reachable(thought.left)) return true;
  }
  return false;
}

/// The numbers that a state has left: those behind its last "left:", or the hand's.
std::string left_of(const std::string& state, const std::string& hand) {
  const size_t mark = state.rfind("(left:");
  return mark == std::string::npos ? hand : state.substr(mark + 6, state.find(')', mark) - mark - 6);
}

Json propose(const std::string& hand, const std::string& state) {
  Json list = Json::array();
  for (const Thought& thought : thoughts_of(numbers_of(left_of(state, hand)))) {
    std::string left;
    for (const Number& number : thought.left) left += (left.empty() ? "" : " ") + text_of(number);
    list.push_back((state.empty() ? "" : state + " ") + thought.operation + "(left:" + left + ")");
  }
  return list;
}

/// Sure, likely or impossible: exact, except that what is possible and not yet done is likely.
Json evaluate(const std::string& hand, const Json& thoughts) {
  Json list = Json::array();
  for (const Json& thought : thoughts) {
    const std::vector<Number> left = numbers_of(left_of(thought.get<std::string>(), hand));
    list.push_back(!reachable(left) ? "impossible" : left.size() == 1 ? "sure" : "likely");
  }
  return list;
}

Json best(const Json& thoughts, const Json& values) {
  Json list = Json::array();
  for (const char* const wanted : {"sure", "likely"}) {
    for (size_t i = 0; i < thoughts.size(); ++i) {
      for (size_t k = 0; k < thoughts[i].size(); ++k) {
        if (values[i][k] == wanted && list.size() < kKept) list.push_back(thoughts[i][k]);
      }
    }
  }
  return list;
}

/// The time that a model takes to write what a proposer or an evaluator answers.
double seconds_to_say(const agent::ScriptedRates& rates, const Json& answer) {
  return static_cast<double>(kPrompt) / rates.prompt_tokens_per_second +
         static_cast<double>(agent::ScriptedEndpoint::tokens_of(agent::dump(answer))) /
             rates.tokens_per_second;
}

bool over(const std::vector<std::string>& states, const std::string& hand) {
  return states.empty() || numbers_of(left_of(states[0], hand)).size() == 1;
}

std::vector<std::string> states_of(const Json& list) {
  std::vector<std::string> states;
  for (const Json& state : list) states.push_back(state.get<std::string>());
  return states;
}

bool solves(const std::string& answer) {
  return answer.ends_with("=24(left:24)");
}

/// One of the three tools: what it answers, after the time that a model would take to write that.
class GameTool : public agent::Tool {
 public:
  GameTool(agent::Loop& loop, agent::ScriptedRates rates, const std::string& name)
      : loop_(loop), rates_(rates) {
    const bool chooses = name == "top_k_select";
    declaration_.name = name;
    Json properties = {{"hand", {{"type", "string"}}}};
    if (name == "thought_proposer") properties["state"] = {{"type", "string"}};
    if (name != "thought_proposer") properties["thoughts"] = {{"type", "array"}};
    if (chooses) properties["values"] = {{"type", "array"}};
    declaration_.parameters = {{"type", "object"}, {"properties", properties}};
  }
  const agent::ToolDeclaration& declaration() const override { return declaration_; }

  std::shared_ptr<agent::ToolCall> start(const Json& arguments, agent::ToolHooks hooks) override {
    const auto hand = arguments["hand"].get<std::string>();
    Json answer;
    double seconds = 0;
    if (declaration_.name == "top_k_select") {
      answer = best(arguments["thoughts"], arguments["values"]);
    } else {
      answer = declaration_.name == "thought_proposer" ? propose(hand, arguments["state"].get<std::string>())
                                                       : evaluate(hand, arguments["thoughts"]);
      seconds = seconds_to_say(rates_, answer);
    }
    return agent::answer_after(loop_, agent::from_seconds(seconds), std::move(hooks),
                               agent::ToolResult::of(std::move(answer)));
  }

 private:
  agent::Loop& loop_;
  agent::ScriptedRates rates_;
  agent::ToolDeclaration declaration_;
};

std::string plan_of(const std::string& hand, const std::vector<std::string>& states, int64_t first) {
  std::string plan;
  std::string thoughts;
  std::string values;
  int64_t id = first;
  for (const std::string& state : states) {
    thoughts += fmt::format("{}\"${}\"", thoughts.empty() ? "" : ", ", id);
    plan += fmt::format("{}. thought_proposer(\"{}\", \"{}\")\n", id++, hand, state);
  }
  for (size_t i = 0; i < states.size(); ++i) {
    values += fmt::format("{}\"${}\"", values.empty() ? "" : ", ", id);
    plan += fmt::format("{}. state_evaluator(\"{}\", \"${}\")\n", id, hand, first + static_cast<int64_t>(i));
    ++id;
  }
  return plan + fmt::format("{}. top_k_select(\"{}\", [{}], [{}])\njoin()\n", id, hand, thoughts, values);
}

}  // namespace

std::vector<std::string> solvable_hands() {
  std::vector<std::string> hands;
  constexpr int kHighest = 13;
  for (int a = 1; a <= kHighest; ++a) {
    for (int b = a; b <= kHighest; ++b) {
      for (int c = b; c <= kHighest; ++c) {
        for (int d = c; d <= kHighest; ++d) {
          if (reachable({{a, 1}, {b, 1}, {c, 1}, {d, 1}}))
            hands.push_back(fmt::format("{} {} {} {}", a, b, c, d));
        }
      }
    }
  }
  return hands;
}

GamePlayed play_24(const std::string& hand, agent::ScriptedRates rates, int concurrency) {
  agent::SimulatedLoop loop;
  std::vector<std::string> states = {""};
  const agent::Run* playing = nullptr;
  agent::ScriptedEndpoint endpoint(loop, rates, [&](const agent::ModelRequest& request) -> std::string {
    const int64_t last = playing && !playing->tasks().empty() ? playing->tasks().rbegin()->first : 0;
    if (request.messages.back().content.find("The results:\n") == std::string::npos)
      return plan_of(hand, states, last + 1);
    states = states_of(playing->tasks().at(last).result);
    return over(states, hand)
               ? "Thought: The tree ends here.\nAction: Finish(" + (states.empty() ? "none" : states[0]) + ")"
               : "Thought: These states are the best.\nAction: Replan(go on from the states of the last "
                 "choice)";
  });
  agent::ToolSet tools;
  for (const char* const name : {"thought_proposer", "state_evaluator", "top_k_select"}) {
    tools.add({.tool = std::make_shared<GameTool>(loop, rates, name),
               .policy = agent::Policy::kAllow,
               .limits = {.time = std::chrono::hours(1), .concurrency = 64}});
  }
  agent::RunOptions options;
  options.max_rounds = 4;
  options.max_tokens = 100'000'000;
  options.max_time = std::chrono::hours(10);
  options.executor.concurrency = concurrency;
  agent::RunResult result;
  agent::Run run(loop, endpoint, tools, options, "Make 24 of " + hand,
                 {.ended = [&](const agent::RunResult& end) { result = end; }});
  playing = &run;
  loop.run();
  if (!result.error.empty()) throw Error(ErrorKind::kBadInput, "a game failed: " + result.error);
  return {.solved = solves(result.answer),
          .seconds = agent::in_seconds(result.time),
          .answer = result.answer,
          .rounds = result.rounds};
}

GamePlayed tree_of_thoughts_24(const std::string& hand, agent::ScriptedRates rates) {
  GamePlayed game;
  std::vector<std::string> states = {""};
  do {
    ++game.rounds;
    Json thoughts = Json::array();
    Json values = Json::array();
    double longest = 0;
    for (const std::string& state : states) {
      thoughts.push_back(propose(hand, state));
      values.push_back(evaluate(hand, thoughts.back()));
      const double seconds = seconds_to_say(rates, thoughts.back()) + seconds_to_say(rates, values.back());
      game.seconds += seconds;
      longest = std::max(longest, seconds);
    }
    game.side_by_side += longest;
    states = states_of(best(thoughts, values));
  } while (!over(states, hand));
  game.answer = states.empty() ? "none" : states[0];
  game.solved = solves(game.answer);
  return game;
}

void measure_games(agent::ScriptedRates rates, bool json) {
  const std::vector<std::string> hands = solvable_hands();
  constexpr size_t kGames = 100;
  constexpr double kPublishedGame = 2.89;  // Table 6.1
  int64_t solved = 0;
  int64_t same = 0;
  double side_by_side = 0;
  double one_by_one = 0;
  double tree = 0;
  double calls_alone = 0;
  for (size_t i = 0; i < kGames; ++i) {
    const std::string& hand = hands[i * hands.size() / kGames];
    const GamePlayed game = play_24(hand, rates, 64);
    const GamePlayed single = play_24(hand, rates, 1);
    solved += game.solved ? 1 : 0;
    const GamePlayed plain = tree_of_thoughts_24(hand, rates);
    same += game.answer == single.answer && game.answer == plain.answer ? 1 : 0;
    tree += plain.seconds / kGames;
    calls_alone += plain.side_by_side / kGames;
    side_by_side += game.seconds / kGames;
    one_by_one += single.seconds / kGames;
  }
  if (json) {
    const nlohmann::ordered_json object = {{"set", "Game of 24"},
                                           {"hands", hands.size()},
                                           {"questions", kGames},
                                           {"solved", solved},
                                           {"same_answers", same},
                                           {"seconds",
                                            {{"tree_of_thoughts", tree},
                                             {"one_by_one", one_by_one},
                                             {"compiler", side_by_side},
                                             {"calls_alone", calls_alone}}},
                                           {"speedup", tree / side_by_side},
                                           {"speedup_of_calls", tree / calls_alone},
                                           {"thesis", {{"speedup", kPublishedGame}}}};
    app::write_out(object.dump() + "\n");
    return;
  }
  app::write_out(fmt::format(
      "Game of 24: {} of the {} hands that can be solved\n  solved {}, the same answers by Tree of "
      "Thoughts and one call at a time {}\n  seconds: {:.1f} side by side, {:.1f} one by one, {:.1f} by "
      "Tree of Thoughts: {:.2f} times (thesis {:.2f})\n  without planner and joiner {:.1f} s side by side: "
      "{:.2f} times\n",
      kGames, hands.size(), solved, same, side_by_side, one_by_one, tree, tree / side_by_side, kPublishedGame,
      calls_alone, tree / calls_alone));
}

}  // namespace verbatim::bench
