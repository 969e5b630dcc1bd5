#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/grammar/plan_grammar.h"
#include "agent/plan/plan_parser.h"
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

// Two hundred plans by the default model, half of them at temperature 0 and half at 1: all are valid, and
// plain and speculative decoding give the same bytes. The model is far too small for good plans, and the test
// says nothing of that.
TEST(PublicPlans, OfTheDefaultModelAreAllValidAndTheSamePlainAndSpeculative) {
  if (!std::getenv("VERBATIM_TEST_DATA")) GTEST_SKIP() << "VERBATIM_TEST_DATA is not set";
  const fs::path path = test::own_data().parent_path().parent_path() / "models" / "target";
  const Recipe plain = load_recipe("plain");
  const Recipe drafts = load_recipe("auto");
  const Model model = Model::load(path, {.recipe = "auto"});
  Engine engine(model, {.max_batch = 1});
  const std::vector<ToolDeclaration> all = tools();
  const Structure structure = plan_structure(all, {}, 1, 6);
  constexpr size_t kQuestions = 100;
  int64_t tokens = 0;
  int64_t forced = 0;
  int64_t calls = 0;
  for (const std::string& question : questions(kQuestions)) {
    Chat chat(model);
    chat.add_user(question);
    for (const float temperature : {0.0f, 1.0f}) {
      Request request{.prompt = chat.tokens(), .options = {}, .recipe = plain};
      request.options.max_tokens = 700;
      request.options.sampling.temperature = temperature;
      request.options.sampling.seed = static_cast<uint64_t>(tokens);
      request.options.structure = structure;
      request.options.origins = true;
      chat.add_stops(request.options);
      const GenerateResult one = engine.generate(request);
      request.recipe = drafts;
      const GenerateResult other = engine.generate(request);
      ASSERT_EQ(one.text, other.text);
      ASSERT_EQ(one.tokens, other.tokens);
      PlanParser parser(all, {}, {});
      ASSERT_NO_THROW({
        parser.add(one.text);
        parser.end();
      }) << one.text;
      calls += parser.tasks();
      tokens += static_cast<int64_t>(other.tokens.size());
      for (const TokenOrigin& origin : other.origins)
        forced += origin.level == TokenOrigin::kStructure ? 1 : 0;
    }
  }
  RecordProperty("calls", static_cast<int>(calls));
  RecordProperty("tokens", static_cast<int>(tokens));
  RecordProperty("forced", static_cast<int>(forced));
  std::printf("%lld calls, %lld tokens, %.1f %% of them drafted by the grammar\n",
              static_cast<long long>(calls), static_cast<long long>(tokens),
              100.0 * static_cast<double>(forced) / static_cast<double>(tokens));
  EXPECT_GT(calls, 0);
  EXPECT_GT(forced, tokens / 10);
}

}  // namespace
}  // namespace verbatim::agent
