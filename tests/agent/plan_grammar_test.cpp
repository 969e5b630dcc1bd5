#include "agent/grammar/plan_grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/plan/plan_parser.h"
#include "agent/run/joiner.h"
#include "support/byte_model.h"
#include "verbatim/engine.h"

namespace verbatim::agent {
namespace {

std::vector<ToolDeclaration> tools() {
  return {
      {.name = "search",
       .parameters = Json::parse(
           R"({"type": "object", "properties": {"query": {"type": "string"}, "count": {"type": "integer", "minimum": 1, "maximum": 20}}, "required": ["query"]})")},
      {.name = "math",
       .parameters = Json::parse(
           R"({"type": "object", "properties": {"expression": {"type": "string", "minLength": 1, "maxLength": 12}}, "required": ["expression"]})")},
      {.name = "s.convert",
       .parameters = Json::parse(
           R"({"type": "object", "properties": {"note": {"type": "string"}, "value": {"anyOf": [{"type": "number"}, {"$ref": "#/$defs/list"}]}, "unit": {"enum": ["m", "km", "$1"]}, "deep": {"type": "object", "properties": {"a b": {"type": "boolean"}}, "required": ["a b"]}}, "required": ["value", "unit", "deep"], "$defs": {"list": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3}}})")},
      {.name = "now"},
      {.name = "any", .parameters = Json::parse(R"({"properties": {"x": {}, "y": {"type": "null"}}})")}};
}

/// A plan of a random model, held to the grammar, and what the parser says to it.
std::string plan(Engine& engine, const Model& model, const Recipe& recipe, uint64_t seed, float temperature,
                 std::set<int64_t> known) {
  const std::vector<ToolDeclaration> all = tools();
  Request request{.prompt = model.encode("a plan"), .options = {}, .recipe = recipe};
  request.options.max_tokens = 3000;
  request.options.sampling.temperature = temperature;
  request.options.sampling.seed = seed;
  const int64_t first = known.empty() ? 1 : *known.rbegin() + 1;
  request.options.structure = plan_structure(all, known, first, 5);
  const GenerateResult result = engine.generate(std::move(request));
  if (result.stats.finish == FinishReason::kContext) return {};  // the model's context is small
  EXPECT_EQ(result.stats.finish, FinishReason::kEndOfSequence);
  PlanParser parser(all, std::move(known), {});
  try {
    parser.add(result.text);
    parser.end();
  } catch (const PlanError& error) {
    ADD_FAILURE() << error.what() << "\n" << result.text;
  }
  return result.text;
}

TEST(PlanGrammar, AllowsPlansThatTheParserTakesAlone) {
  const Model& model = test::byte_pair().target;
  Engine engine(model, {.max_batch = 1, .threads = 1});
  std::set<std::string> texts;
  std::string together;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const std::string text = plan(engine, model, load_recipe("plain"), seed, 1.0f,
                                  seed % 2 == 0 ? std::set<int64_t>{} : std::set<int64_t>{3, 12});
    texts.insert(text);
    together += text;
  }
  EXPECT_GT(texts.size(), 10u);
  for (const char* const part : {"search(", "math(", "s.convert(", "now()", "any(", "$"})
    EXPECT_NE(together.find(part), std::string::npos) << part;
}

// A random model writes numbers and strings of all lengths, so its plans come near the bound.
TEST(PlanGrammar, EndsWithinTheRoomThatThereIs) {
  const Model& model = test::byte_pair().target;
  Engine engine(model, {.max_batch = 1, .threads = 1});
  const std::vector<ToolDeclaration> all = tools();
  std::set<int64_t> numbers_of_calls;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const int64_t room = 400 + 25 * static_cast<int64_t>(seed % 20);
    Request request{.prompt = model.encode("a plan"), .options = {}, .recipe = load_recipe("plain")};
    request.options.max_tokens = room;
    request.options.sampling.temperature = 1;
    request.options.sampling.seed = seed;
    request.options.structure = plan_structure(all, {3, 12}, 13, 16, room);
    const GenerateResult result = engine.generate(std::move(request));
    ASSERT_EQ(result.stats.finish, FinishReason::kEndOfSequence) << room << "\n" << result.text;
    PlanParser parser(all, {3, 12}, {});
    ASSERT_NO_THROW({
      parser.add(result.text);
      parser.end();
    }) << result.text;
    numbers_of_calls.insert(static_cast<int64_t>(parser.tasks()));
  }
  EXPECT_GT(*numbers_of_calls.rbegin(), 1);
}

TEST(JoinerGrammar, EndsWithinTheRoomThatThereIs) {
  const Model& model = test::byte_pair().target;
  Engine engine(model, {.max_batch = 1, .threads = 1});
  int64_t longest = 0;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    const bool may_replan = seed % 2 == 0;
    const int64_t room = 64 + 12 * static_cast<int64_t>(seed % 8);
    Request request{.prompt = model.encode("an answer"), .options = {}, .recipe = load_recipe("plain")};
    request.options.max_tokens = room;
    request.options.sampling.temperature = 1;
    request.options.sampling.seed = seed;
    request.options.structure = joiner_structure(may_replan, room);
    const GenerateResult result = engine.generate(std::move(request));
    ASSERT_EQ(result.stats.finish, FinishReason::kEndOfSequence) << room << "\n" << result.text;
    const std::optional<JoinerDecision> decision = read_joiner(result.text);
    ASSERT_TRUE(decision) << result.text;
    EXPECT_TRUE(decision->finish || may_replan);
    longest = std::max(longest, std::ssize(result.text));
  }
  EXPECT_GT(longest, 64);  // a larger room is made use of
}

TEST(TurnGrammar, EndsWithinTheRoomThatThereIs) {
  const Model& model = test::byte_pair().target;
  Engine engine(model, {.max_batch = 1, .threads = 1});
  const std::vector<ToolDeclaration> all = tools();
  int64_t longest = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const int64_t room = 400 + 25 * static_cast<int64_t>(seed % 20);
    Request request{.prompt = model.encode("a turn"), .options = {}, .recipe = load_recipe("plain")};
    request.options.max_tokens = room;
    request.options.sampling.temperature = 1;
    request.options.sampling.seed = seed;
    request.options.structure = turn_structure(all, {3, 12}, seed % 2 == 0, room);
    const GenerateResult result = engine.generate(std::move(request));
    ASSERT_EQ(result.stats.finish, FinishReason::kEndOfSequence) << room << "\n" << result.text;
    longest = std::max(longest, std::ssize(result.text));
  }
  EXPECT_GT(longest, 200);  // the room is made use of
}

TEST(PlanGrammar, OfNoToolsIsTheEndAlone) {
  const Model& model = test::byte_pair().target;
  Engine engine(model, {.max_batch = 1, .threads = 1});
  Request request{.prompt = model.encode("x"), .options = {}, .recipe = load_recipe("plain")};
  request.options.structure = plan_structure({}, {}, 1, 5);
  EXPECT_EQ(engine.generate(std::move(request)).text, "join()");
}

}  // namespace
}  // namespace verbatim::agent
