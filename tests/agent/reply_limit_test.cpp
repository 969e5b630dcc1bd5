#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/loop/simulated_loop.h"
#include "agent/run/run.h"
#include "agent/simulated_tool.h"
#include "support/byte_model.h"
#include "verbatim/engine.h"

namespace verbatim::agent {
namespace {

using test::SimulatedTool;

/// Answers with a random model that writes as much as the request's structure lets it. The model does not see
/// the conversation, which its small context would not hold.
class RandomWriter : public Endpoint {
 public:
  explicit RandomWriter(Loop& loop) : loop_(loop), engine_(model(), {.max_batch = 1, .threads = 1}) {}

  bool constrains() const override { return true; }
  std::optional<int64_t> room(const std::vector<ModelMessage>& /*messages*/) const override { return 50'000; }
  std::unique_ptr<ModelStream> start(ModelRequest request, ModelHooks hooks) override {
    Request wanted{.prompt = model().encode("x"), .options = {}, .recipe = load_recipe("plain")};
    wanted.options.max_tokens = request.max_tokens;
    wanted.options.sampling.temperature = static_cast<float>(request.temperature);
    wanted.options.sampling.seed = request.seed + requests_++;
    wanted.options.structure = request.structure;
    const GenerateResult result = engine_.generate(std::move(wanted));
    loop_.after(Duration(0), [result, hooks = std::move(hooks)] {
      hooks.piece(result.text);
      hooks.ended({.cut = result.stats.finish != FinishReason::kEndOfSequence,
                   .prompt_tokens = 1,
                   .reply_tokens = std::ssize(result.tokens)});
    });
    return std::make_unique<ModelStream>();
  }

 private:
  static const Model& model() { return test::byte_pair().target; }

  Loop& loop_;
  Engine engine_;
  uint64_t requests_ = 0;
};

// The context has room for far more, so that what ends a reply in time is the limit of its tokens alone.
TEST(ReplyLimit, LeavesPlansAndAnswersWhole) {
  SimulatedLoop loop;
  RandomWriter endpoint(loop);
  ToolSet tools;
  tools.add(
      {.tool = std::make_shared<SimulatedTool>(
           loop,
           ToolDeclaration{
               .name = "look",
               .parameters = Json::parse(
                   R"({"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]})")},
           [](const Json&) {
             return SimulatedTool::Behaviour{Duration(0), ToolResult::of("seen")};
           }),
       .policy = Policy::kAllow});
  for (uint64_t seed = 0; seed < 12; ++seed) {
    std::string faults;
    int64_t longest = 0;
    std::optional<RunResult> result;
    const RunHooks hooks{.event =
                             [&](const RunEvent& event) {
                               if (event.kind == RunEvent::Kind::kWrong) faults += event.text + "\n";
                               longest = std::max(longest, event.reply_tokens);
                             },
                         .ended = [&](const RunResult& end) { result = end; }};
    const RunOptions options{
        .shared_prompt = true, .max_reply_tokens = 150, .temperature = 1, .seed = 100 * seed};
    agent::Run run(loop, endpoint, tools, options, "Why?", hooks);
    loop.run();
    EXPECT_EQ(faults, "");
    ASSERT_TRUE(result);
    EXPECT_EQ(result->error, "");
    EXPECT_GT(longest, 0);
    EXPECT_LE(longest, 150);
  }
}

}  // namespace
}  // namespace verbatim::agent
