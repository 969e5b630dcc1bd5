#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/grammar/plan_grammar.h"
#include "agent/loop/real_loop.h"
#include "agent/model/engine_endpoint.h"
#include "agent/plan/plan_parser.h"
#include "agent/run/prompts.h"
#include "support/test_data.h"
#include "verbatim/chat.h"
#include "verbatim/engine.h"

namespace verbatim::agent {
namespace {

namespace fs = std::filesystem;

std::vector<ToolDeclaration> tools() {
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

/// The questions of a public set.
std::vector<std::string> questions(size_t count) {
  const Json all = Json::parse(
      test::read_file(fs::path(std::getenv("VERBATIM_TEST_DATA")) / "agent" / "parallelqa_dataset.json"));
  std::vector<std::string> found;
  for (size_t i = 0; i < count; ++i) found.push_back(all[i % all.size()]["question"].get<std::string>());
  return found;
}

/// What the own engine answers to a request, as an agent gets it.
struct Planned {
  std::string text;
  ModelReply reply;
};

Planned asked(RealLoop& loop, Endpoint& endpoint, const ModelRequest& request) {
  Planned planned;
  const std::unique_ptr<ModelStream> stream =
      endpoint.start(request, {.piece = [&](std::string_view piece) { planned.text += piece; },
                               .ended =
                                   [&](const ModelReply& reply) {
                                     planned.reply = reply;
                                     loop.stop();
                                   }});
  loop.run();
  return planned;
}

// As a run asks for plans: with its prompt, its endpoint, and its grammar of up to sixteen calls, which the
// context of the default model bounds further, so that each plan ends. The model is far too small for good
// plans, and the test says nothing of that. `verbatim-bench agent --plans` writes two hundred of them.
TEST(PublicPlans, AskedForByARunAreValidAndTheSamePlainAndSpeculative) {
  if (!std::getenv("VERBATIM_TEST_DATA")) GTEST_SKIP() << "VERBATIM_TEST_DATA is not set";
  const fs::path path = test::own_data().parent_path().parent_path() / "models" / "target";
  const Model model = Model::load(path, {.recipe = "auto"});
  Engine engine(model, {.max_batch = 1});
  RealLoop loop;
  const std::unique_ptr<Endpoint> plain = engine_endpoint(loop, model, engine, load_recipe("plain"));
  const std::unique_ptr<Endpoint> drafts = engine_endpoint(loop, model, engine, load_recipe("auto"));
  const std::vector<ToolDeclaration> all = tools();
  ModelRequest request{.messages = {{"system", system_prompt({}, all)}, {"user", ""}},
                       .max_tokens = RunOptions{}.max_reply_tokens};
  constexpr size_t kQuestions = 10;
  int64_t tokens = 0;
  int64_t forced = 0;
  int64_t calls = 0;
  for (const std::string& question : questions(kQuestions)) {
    request.messages.back().content = question;
    request.structure = plan_structure(all, {}, 1, kMostPlannedCalls, drafts->room(request.messages));
    for (const double temperature : {0.0, 1.0}) {
      request.temperature = temperature;
      request.seed = static_cast<uint64_t>(tokens);
      const Planned one = asked(loop, *plain, request);
      const Planned other = asked(loop, *drafts, request);
      ASSERT_EQ(one.text, other.text);
      ASSERT_EQ(one.reply.reply_tokens, other.reply.reply_tokens);
      ASSERT_EQ(other.reply.error, "") << other.text;
      ASSERT_FALSE(other.reply.cut) << other.text;
      PlanParser parser(all, {}, {});
      ASSERT_NO_THROW({
        parser.add(other.text);
        parser.end();
      }) << other.text;
      calls += parser.tasks();
      tokens += other.reply.reply_tokens;
      forced += other.reply.structure_tokens;
    }
  }
  RecordProperty("calls", static_cast<int>(calls));
  RecordProperty("tokens", static_cast<int>(tokens));
  RecordProperty("forced", static_cast<int>(forced));
  EXPECT_GT(calls, 0);
  EXPECT_GT(forced, tokens / 10);
}

}  // namespace
}  // namespace verbatim::agent
