#include "bench/agent_model.h"

#include <fmt/format.h>

#include <cmath>

#include "agent/tools/instant_tool.h"

namespace verbatim::bench {

namespace {

using agent::Json;
using agent::RunStrategy;

/// What a page says first, by a rule: about as long as the first paragraph of an encyclopedia.
std::string page_of(const std::string& subject) {
  std::string text = subject + " is the subject of this page. ";
  for (int i = 0; text.size() < 480; ++i)
    text += fmt::format("Sentence {} says something more about {}. ", i + 1, subject);
  return text;
}

std::string observation_of(const AgentStep& step) {
  return step.tool == "search" ? page_of(step.argument) : "42.5";
}

std::string call_of(const AgentStep& step) {
  return fmt::format("{}(\"{}\")", step.tool, step.argument);
}

std::string thought_of(const AgentStep& step) {
  return step.tool == "search"
             ? fmt::format("Thought: I need to search {} and find what the question asks about it.\n",
                           step.argument)
             : std::string("Thought: Now I can calculate this from the results that I have so far.\n");
}

std::string final_thought(const AgentQuestion& question) {
  return fmt::format("Thought: The results say enough about all {} things to answer the question.\n",
                     question.branch);
}

/// The steps in rounds, each of which uses results of the rounds before.
std::vector<std::vector<size_t>> rounds_of(const AgentQuestion& question) {
  std::vector<std::vector<size_t>> rounds;
  std::vector<size_t> round(question.steps.size());
  for (size_t i = 0; i < question.steps.size(); ++i) {
    for (const int64_t input : question.steps[i].inputs)
      round[i] = std::max(round[i], round[static_cast<size_t>(input) - 1] + 1);
    rounds.resize(std::max(rounds.size(), round[i] + 1));
    rounds[round[i]].push_back(i);
  }
  return rounds;
}

class TimedTool : public agent::Tool {
 public:
  TimedTool(agent::Loop& loop, const std::string& name, AgentTimes times) : loop_(loop), times_(times) {
    const char* const parameter = name == "search" ? "query" : "expression";
    declaration_.name = name;
    declaration_.description =
        name == "search"
            ? "Searches an encyclopedia for a subject and answers with the first paragraph of its page."
            : "Computes an expression in which results of earlier calls may stand.";
    declaration_.parameters = {
        {"type", "object"}, {"properties", {{parameter, {{"type", "string"}}}}}, {"required", {parameter}}};
  }
  const agent::ToolDeclaration& declaration() const override { return declaration_; }

  std::shared_ptr<agent::ToolCall> start(const Json& arguments, agent::ToolHooks hooks) override {
    const auto argument = arguments.begin()->get<std::string>();
    const double seconds = tool_seconds(times_, declaration_.name, argument);
    return agent::answer_after(loop_, agent::from_seconds(seconds), std::move(hooks),
                               agent::ToolResult::of(observation_of({declaration_.name, argument})));
  }

 private:
  agent::Loop& loop_;
  agent::ToolDeclaration declaration_;
  AgentTimes times_;
};

}  // namespace

std::string scripted_plan(const AgentQuestion& question) {
  std::string plan;
  int64_t id = 0;
  for (const AgentStep& step : question.steps) plan += fmt::format("{}. {}\n", ++id, call_of(step));
  return plan + "Thought: I can answer the question now.\n" + fmt::format("{}. join()\n", id + 1);
}

std::string scripted_reply(const AgentQuestion& question, RunStrategy strategy,
                           const agent::ModelRequest& request) {
  if (strategy == RunStrategy::kCompiler) {
    const bool joins = request.messages.back().content.find("The results:\n") != std::string::npos;
    return joins ? final_thought(question) + fmt::format("Action: Finish({})", question.answer)
                 : scripted_plan(question);
  }
  const size_t turn = (request.messages.size() - 2) / 2;  // each has a reply and its results
  const std::string answer = final_thought(question) + "Answer: " + question.answer;
  if (strategy == RunStrategy::kParallel) {
    const auto rounds = rounds_of(question);
    if (turn >= rounds.size()) return answer;
    std::string reply = "Thought: I can look up or compute these now.\n";
    for (const size_t step : rounds[turn]) reply += "Action: " + call_of(question.steps[step]) + "\n";
    return reply;
  }
  if (turn >= question.steps.size()) return answer;
  return thought_of(question.steps[turn]) + "Action: " + call_of(question.steps[turn]) + "\n";
}

std::string scripted_examples(const std::vector<AgentQuestion>& questions, size_t count,
                              RunStrategy strategy) {
  std::string text;
  for (size_t i = 0; i < std::min(count, questions.size()); ++i) {
    const AgentQuestion& question = questions[i];
    text += "Question: " + question.text + "\n";
    if (strategy == RunStrategy::kCompiler) {
      text += scripted_plan(question);
    } else {
      for (const AgentStep& step : question.steps) {
        text +=
            thought_of(step) + "Action: " + call_of(step) + "\nObservation: " + observation_of(step) + "\n";
      }
      text += final_thought(question) + "Answer: " + question.answer + "\n";
    }
    text += "###\n";
  }
  return text;
}

double tool_seconds(const AgentTimes& times, const std::string& tool, const std::string& argument) {
  if (tool == "math") return times.math;
  uint64_t hash = 1469598103934665603U;
  for (const char c : argument) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  hash ^= hash >> 29U;
  hash *= 0x9E3779B97F4A7C15U;
  const double share = (static_cast<double>(hash >> 11U) + 0.5) / 9007199254740992.0;
  constexpr double kSlowestOfEight = 2.717857142857143;  // 1 + 1/2 + ... + 1/8 means of an exponential
  const double spread = (times.slowest - times.search) / (kSlowestOfEight - 1);
  return times.search - spread - spread * std::log(share);
}

std::shared_ptr<agent::Tool> timed_tool(agent::Loop& loop, const std::string& name, AgentTimes times) {
  return std::make_shared<TimedTool>(loop, name, times);
}

}  // namespace verbatim::bench
