#include "bench/agent_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "agent/grammar/plan_grammar.h"
#include "agent/json.h"
#include "agent/loop/real_loop.h"
#include "agent/model/engine_endpoint.h"
#include "agent/plan/plan_parser.h"
#include "agent/run/run.h"
#include "agent/tools/instant_tool.h"
#include "app/load_model.h"
#include "app/text_io.h"
#include "bench/agent_questions.h"
#include "verbatim/engine.h"

namespace verbatim::bench {

namespace {

using agent::Json;

/// Plans that a model wrote for questions as a run asks for them: with its prompt, its grammar and its own
/// engine.
struct PlansWritten {
  int64_t plans = 0;
  int64_t valid = 0;             ///< ended, and taken by the parser from the first line to the end
  int64_t same = 0;              ///< the same bytes with plain and with speculative decoding
  int64_t calls = 0;             ///< of all plans
  int64_t most_calls = 0;        ///< of one plan
  int64_t prompt_tokens = 0;     ///< of the longest prompt
  int64_t tokens = 0;            ///< of all plans
  int64_t structure_tokens = 0;  ///< part of them: those that the grammar drafted
  std::string first_fault = {};  ///< of a plan that is not valid; empty if there is none
};

/// Tools whose arguments are texts, numbers, listed values and lists.
std::vector<agent::ToolDeclaration> planned_tools() {
  return {
      {.name = "search",
       .description = "Looks a name up.",
       .parameters = Json::parse(
           R"({"type": "object", "properties": {"query": {"type": "string"}, "count": {"type": "integer", "minimum": 1, "maximum": 20}}, "required": ["query"]})")},
      {.name = "math",
       .description = "Computes.",
       .parameters = Json::parse(
           R"({"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]})")},
      {.name = "convert",
       .parameters = Json::parse(
           R"({"type": "object", "properties": {"value": {"type": "number"}, "unit": {"enum": ["m", "km", "mile"]}, "all": {"type": "array", "items": {"type": "number"}}}, "required": ["value", "unit"]})")}};
}

/// The first reply of a run, which is its plan, and what the run says where there is none.
struct Planned {
  std::string text;
  std::string fault;
  int64_t prompt_tokens = 0;
  int64_t tokens = 0;
  int64_t structure_tokens = 0;
};

/// An endpoint that ends a run with its first reply, and keeps that.
class FirstReply : public agent::Endpoint {
 public:
  FirstReply(agent::Endpoint& inner, Planned& planned) : inner_(inner), planned_(planned) {}
  bool constrains() const override { return true; }
  std::optional<int64_t> room(const std::vector<agent::ModelMessage>& messages) const override {
    return inner_.room(messages);
  }
  std::unique_ptr<agent::ModelStream> start(agent::ModelRequest request, agent::ModelHooks hooks) override {
    agent::ModelHooks own;
    own.piece = [this](std::string_view piece) { planned_.text += piece; };
    own.ended = [this, ended = std::move(hooks.ended)](const agent::ModelReply& reply) {
      planned_.fault = reply.cut ? "the plan was cut at its token limit" : reply.error;
      planned_.prompt_tokens = reply.prompt_tokens;
      planned_.tokens = reply.reply_tokens;
      planned_.structure_tokens = reply.structure_tokens;
      ended({.error = "the plan is there"});
    };
    return inner_.start(std::move(request), std::move(own));
  }

 private:
  agent::Endpoint& inner_;
  Planned& planned_;
};

/// Runs a question until its plan is there.
Planned plan_of(agent::RealLoop& loop, agent::Endpoint& endpoint, const agent::ToolSet& tools,
                const std::string& question, double temperature, uint64_t seed) {
  Planned planned;
  FirstReply first(endpoint, planned);
  agent::RunOptions options;
  options.shared_prompt = true;
  options.temperature = temperature;
  options.seed = seed;
  options.max_time = std::chrono::hours(24);  // a machine that is busy makes no plan wrong
  agent::Run run(loop, first, tools, options, question, {.ended = [&](const agent::RunResult& end) {
                   if (planned.tokens == 0 && planned.fault.empty()) planned.fault = end.error;
                   loop.stop();
                 }});
  loop.run();
  return planned;
}

/// Lets a model plan for each question once at temperature 0 and once at 1.
PlansWritten write_plans(const std::string& model_path, const std::vector<std::string>& questions) {
  const Model model = app::load_model(model_path, ModelOptions{.recipe = "auto"});
  Engine engine(model, {.max_batch = 1});
  agent::RealLoop loop;
  const std::unique_ptr<agent::Endpoint> plain =
      agent::engine_endpoint(loop, model, engine, load_recipe("plain"));
  const std::unique_ptr<agent::Endpoint> drafts =
      agent::engine_endpoint(loop, model, engine, load_recipe("auto"));
  const std::vector<agent::ToolDeclaration> declarations = planned_tools();
  agent::ToolSet tools;
  for (const agent::ToolDeclaration& declaration : declarations)
    tools.add({.tool = std::make_shared<agent::InstantTool>(loop, declaration,
                                                            [](const Json&) { return Json(); })});
  PlansWritten written;
  for (const std::string& question : questions) {
    for (const double temperature : {0.0, 1.0}) {
      const auto seed = static_cast<uint64_t>(written.plans);
      const Planned one = plan_of(loop, *plain, tools, question, temperature, seed);
      const Planned other = plan_of(loop, *drafts, tools, question, temperature, seed);
      ++written.plans;
      written.same += one.text == other.text && one.tokens == other.tokens ? 1 : 0;
      std::string fault = other.fault;
      int64_t calls = 0;
      try {
        agent::PlanParser parser(declarations, {}, {});
        parser.add(other.text);
        parser.end();
        calls = static_cast<int64_t>(parser.tasks());
      } catch (const agent::PlanError& error) {
        if (fault.empty()) fault = error.what();
      }
      written.valid += fault.empty() ? 1 : 0;
      if (written.first_fault.empty()) written.first_fault = fault;
      written.calls += calls;
      written.most_calls = std::max(written.most_calls, calls);
      written.prompt_tokens = std::max(written.prompt_tokens, other.prompt_tokens);
      written.tokens += other.tokens;
      written.structure_tokens += other.structure_tokens;
    }
  }
  return written;
}

}  // namespace

void measure_plans(const std::string& model, const std::filesystem::path& data, int64_t most, bool json) {
  if (data.empty()) throw Error(ErrorKind::kUsage, "--plans wants questions: name their folder with --data");
  std::vector<std::string> questions;
  constexpr size_t kQuestions = 100;
  for (const AgentQuestion& question : agent_questions(AgentSet::kParallel, data)) {
    if (questions.size() == (most > 0 ? static_cast<size_t>(most) : kQuestions)) break;
    questions.push_back(question.text);
  }
  const PlansWritten written = write_plans(model, questions);
  const double share = static_cast<double>(written.structure_tokens) /
                       static_cast<double>(std::max<int64_t>(written.tokens, 1));
  if (json) {
    const nlohmann::ordered_json object = {{"set", "plans"},
                                           {"plans", written.plans},
                                           {"valid", written.valid},
                                           {"same", written.same},
                                           {"calls", written.calls},
                                           {"most_calls", written.most_calls},
                                           {"longest_prompt", written.prompt_tokens},
                                           {"tokens", written.tokens},
                                           {"structure_tokens", written.structure_tokens},
                                           {"structure_share", share}};
    app::write_out(object.dump() + "\n");
  } else {
    app::write_out(fmt::format(
        "{} plans for {} questions, at temperature 0 and at 1: {} valid, {} the same bytes plain and "
        "speculative\n",
        written.plans, questions.size(), written.valid, written.same));
    app::write_out(
        fmt::format("  {} calls, at most {} in a plan, after prompts of up to {} tokens; the grammar drafted "
                    "{:.1f} % of {} "
                    "tokens\n",
                    written.calls, written.most_calls, written.prompt_tokens, 100 * share, written.tokens));
  }
  if (written.valid < written.plans || written.same < written.plans) {
    throw Error(ErrorKind::kBadInput,
                fmt::format("{} plans are not valid ({}), and {} differ", written.plans - written.valid,
                            written.first_fault, written.plans - written.same));
  }
}

}  // namespace verbatim::bench
