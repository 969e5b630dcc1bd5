#include <fmt/format.h>
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

// As a run asks for plans: with its prompt, its grammar of up to 16 calls and its endpoint. The model repeats
// itself, and its context has only 1,024 tokens, so that some plans fill it; of those every whole line is
// valid, of the others all. Plain and speculative decoding give the same bytes.
TEST(PublicPlans, AskedForByARunAreValidAndTheSamePlainAndSpeculative) {
  if (!std::getenv("VERBATIM_TEST_DATA")) GTEST_SKIP() << "VERBATIM_TEST_DATA is not set";
  const fs::path path = test::own_data().parent_path().parent_path() / "models" / "target";
  const Model model = Model::load(path, {.recipe = "auto"});
  Engine engine(model, {.max_batch = 1});
  RealLoop loop;
  const std::unique_ptr<Endpoint> plain = engine_endpoint(loop, model, engine, load_recipe("plain"));
  const std::unique_ptr<Endpoint> drafts = engine_endpoint(loop, model, engine, load_recipe("auto"));
  const std::vector<ToolDeclaration> all = tools();
  constexpr int64_t kMostCalls = 16;  // of a run's plans
  ModelRequest request{.messages = {{"system", system_prompt({}, all)}, {"user", ""}},
                       .max_tokens = 1024,
                       .structure = plan_structure(all, {}, 1, kMostCalls)};
  constexpr size_t kQuestions = 10;
  int64_t whole = 0;
  int64_t prompt = 0;
  int64_t tokens = 0;
  int64_t forced = 0;
  int64_t calls = 0;
  int64_t most = 0;
  for (const std::string& question : questions(kQuestions)) {
    request.messages.back().content = question;
    for (const double temperature : {0.0, 1.0}) {
      request.temperature = temperature;
      request.seed = static_cast<uint64_t>(tokens);
      const Planned one = asked(loop, *plain, request);
      const Planned other = asked(loop, *drafts, request);
      ASSERT_EQ(one.text, other.text);
      ASSERT_EQ(one.reply.reply_tokens, other.reply.reply_tokens);
      const bool ends = other.text.ends_with("join()\n") || other.text.ends_with("join()");
      whole += ends ? 1 : 0;
      PlanParser parser(all, {}, {});
      ASSERT_NO_THROW({
        parser.add(ends ? other.text : other.text.substr(0, other.text.rfind('\n') + 1));
        if (ends) parser.end();
      }) << other.text;
      ASSERT_EQ(other.reply.error.empty(), ends) << other.reply.error << other.text;
      calls += parser.tasks();
      most = std::max(most, static_cast<int64_t>(parser.tasks()));
      prompt = std::max(prompt, other.reply.prompt_tokens);
      tokens += other.reply.reply_tokens;
      forced += other.reply.structure_tokens;
    }
  }
  RecordProperty("calls", static_cast<int>(calls));
  RecordProperty("tokens", static_cast<int>(tokens));
  RecordProperty("forced", static_cast<int>(forced));
  fmt::print(
      "{} of {} plans ended; {} calls, up to {} in a plan, after prompts of up to {} tokens; {} tokens, "
      "{:.1f} % of them drafted by the grammar\n",
      whole, 2 * kQuestions, calls, most, prompt, tokens,
      100.0 * static_cast<double>(forced) / static_cast<double>(tokens));
  EXPECT_GT(whole, 0);
  EXPECT_GT(calls, 0);
  EXPECT_GT(forced, tokens / 10);
}

}  // namespace
}  // namespace verbatim::agent
