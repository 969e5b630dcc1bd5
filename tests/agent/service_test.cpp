#include "verbatim/agent_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "agent/json.h"
#include "agent/scripted_server.h"
#include "support/speculative_text.h"
#include "support/test_data.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

using agent::Json;
using ::testing::HasSubstr;

/// The default model with its engine, and a service with the scripted server of tools.
class Answering : public ::testing::Test {
 protected:
  Answering() {
    folder_.write("server.sh", test::kScriptedServer);
    folder_.write("servers.json", agent::dump({{"mcpServers",
                                                {{"s",
                                                  {{"command", "sh"},
                                                   {"args", {(folder_.path() / "server.sh").string()}},
                                                   {"env", {{"LOG", (folder_.path() / "log").string()}}},
                                                   {"settings", {{"policy", "allow"}}},
                                                   {"tools", {{"second", {{"policy", "deny"}}}}}}}}}}));
    service_ = start_agent_service({.servers = folder_.path() / "servers.json", .max_questions = 3});
  }

  static Engine& engine() {
    static Engine one(model(), {.max_batch = 2, .threads = 1});
    return one;
  }
  static const Model& model() {
    static const Model one = [] {
      test::measure_apart();
      return Model::load(test::default_model(), {.recipe = "plain"});
    }();
    return one;
  }

  /// A question whose plan is one call of a tool.
  static AgentQuestion question(const char* tool) {
    AgentQuestion asked;
    asked.text = "What does it say?";
    asked.tools = {tool};
    asked.must_call = true;
    asked.model = &model();
    asked.engine = &engine();
    asked.recipe = load_recipe("plain");
    asked.max_calls = 1;
    return asked;
  }

  test::TemporaryFolder folder_;
  std::shared_ptr<AgentService> service_;
};

/// What came of a question.
struct Outcome {
  std::promise<AgentAnswer> ended;
  std::promise<void> started;  ///< the first call
  int64_t starts = 0;
  int64_t settled = 0;

  AgentQuestionHooks hooks() {
    return {.event =
                [this](const AgentEvent& event) {
                  if (event.kind == "started" && ++starts == 1) started.set_value();
                  settled += event.kind == "settled" ? 1 : 0;
                },
            .ended = [this](const AgentAnswer& answer) { ended.set_value(answer); }};
  }
};

TEST_F(Answering, ListsWhatServersHaveButForWhatIsDenied) {
  ASSERT_EQ(service_->servers().size(), 1u);
  EXPECT_EQ(service_->servers()[0].label, "s");
  std::vector<std::string> names;
  for (const AgentTool& tool : service_->servers()[0].tools) names.push_back(tool.name);
  EXPECT_THAT(names, ::testing::ElementsAre("echo", "lies", "hangs"));
  EXPECT_FALSE(service_->servers()[0].tools[0].asks);
}

TEST_F(Answering, AnswersSideBySideAndNoMoreThanTheLimit) {
  Outcome hanging;
  Outcome first;
  Outcome second;
  Outcome third;
  Outcome refused;
  const int64_t number = service_->start(question("hangs"), hanging.hooks());
  ASSERT_NE(number, 0);
  hanging.started.get_future().wait();
  {
    Outcome others[2];
    int64_t numbers[2];
    for (int i = 0; i < 2; ++i) numbers[i] = service_->start(question("hangs"), others[i].hooks());
    EXPECT_EQ(service_->start(question("lies"), refused.hooks()), 0);
    for (const int64_t other : numbers) service_->cancel(other);
    for (Outcome& other : others) EXPECT_TRUE(other.ended.get_future().get().cancelled);
  }
  ASSERT_NE(service_->start(question("lies"), first.hooks()), 0);
  ASSERT_NE(service_->start(question("lies"), second.hooks()), 0);
  for (Outcome* const one : {&first, &second}) {
    const AgentAnswer answer = one->ended.get_future().get();
    EXPECT_EQ(answer.error, "");
    EXPECT_EQ(answer.calls, 1);
    EXPECT_EQ(one->settled, 1);
  }
  service_->cancel(number);
  const AgentAnswer off = hanging.ended.get_future().get();
  EXPECT_TRUE(off.cancelled);
  EXPECT_EQ(off.error, "it was called off");
  EXPECT_EQ(hanging.settled, 1);
  service_->cancel(number);  // it is over
  EXPECT_NE(service_->start(question("lies"), third.hooks()), 0);
  EXPECT_EQ(third.ended.get_future().get().error, "");
}

TEST_F(Answering, CallsNothingThatIsDeniedOrWasNotChosen) {
  Outcome outcome;
  AgentQuestion asked = question("second");
  asked.tools.push_back("no such tool");
  ASSERT_NE(service_->start(std::move(asked), outcome.hooks()), 0);
  const AgentAnswer answer = outcome.ended.get_future().get();
  EXPECT_EQ(answer.error, "a tool has to be called, and there is none that may be");
  EXPECT_TRUE(answer.no_tool);
  EXPECT_EQ(answer.calls, 0);
}

TEST_F(Answering, CountsThePromptsAndTokensOfItsRequests) {
  Outcome outcome;
  std::atomic<int64_t> tokens = 0;
  std::atomic<int64_t> first = 0;
  std::atomic<int64_t> prompts = 0;
  std::atomic<int64_t> cached = 0;
  std::atomic<int64_t> generated = 0;
  AgentQuestionHooks hooks = outcome.hooks();
  hooks.tokens = [&](int64_t count, bool begins, double seconds) {
    tokens += count;
    first += begins ? 1 : 0;
    EXPECT_GE(seconds, 0);
  };
  hooks.generated = [&](const GenerateResult& result, int64_t prompt_tokens) {
    prompts += prompt_tokens;
    cached += prompt_tokens - result.stats.prompt_tokens;
    generated += result.stats.generated_tokens;
  };
  ASSERT_NE(service_->start(question("lies"), std::move(hooks)), 0);
  const AgentAnswer answer = outcome.ended.get_future().get();
  EXPECT_EQ(answer.error, "");
  EXPECT_GE(answer.requests, 2);
  EXPECT_EQ(first, answer.requests);
  EXPECT_EQ(tokens, answer.reply_tokens);
  EXPECT_EQ(generated, answer.reply_tokens);
  EXPECT_EQ(prompts, answer.prompt_tokens);
  EXPECT_EQ(cached, answer.cached_tokens);
  EXPECT_GT(answer.cached_tokens, 0);  // the joiner goes on where the planner was
  EXPECT_LT(answer.cached_tokens, answer.prompt_tokens);
}

TEST_F(Answering, EndsAQuestionThatAnUnexpectedExceptionMetAndNoOther) {
  Outcome hanging;
  const int64_t number = service_->start(question("hangs"), hanging.hooks());
  ASSERT_NE(number, 0);
  hanging.started.get_future().wait();
  for (const char* const when : {"asked", "replied", "task", "started", "settled", "answer"}) {
    Outcome outcome;
    AgentQuestionHooks hooks = outcome.hooks();
    hooks.event = [when](const AgentEvent& event) {
      if (event.kind == when) throw std::runtime_error("no such luck");
    };
    ASSERT_NE(service_->start(question("lies"), std::move(hooks)), 0);
    EXPECT_EQ(outcome.ended.get_future().get().error,
              "the answer ended by a fault that nobody expected: no such luck")
        << when;
  }
  Outcome next;
  ASSERT_NE(service_->start(question("lies"), next.hooks()), 0);
  EXPECT_EQ(next.ended.get_future().get().error, "");
  service_->cancel(number);
  EXPECT_EQ(hanging.ended.get_future().get().error, "it was called off");
}

TEST_F(Answering, TakesNoPromptThatIsLongerThanItMayBe) {
  Outcome outcome;
  AgentQuestion asked = question("lies");
  asked.max_prompt_tokens = 5;
  ASSERT_NE(service_->start(std::move(asked), outcome.hooks()), 0);
  const AgentAnswer answer = outcome.ended.get_future().get();
  EXPECT_TRUE(answer.too_long);
  EXPECT_THAT(answer.error,
              ::testing::MatchesRegex("the prompt has [0-9]+ tokens; this server takes 5 at most"));
}

TEST_F(Answering, TellsOfAQuestionThatIsTooLong) {
  Outcome outcome;
  AgentQuestion asked = question("lies");
  for (int i = 0; i < 2000; ++i) asked.text += " word" + std::to_string(i);
  ASSERT_NE(service_->start(std::move(asked), outcome.hooks()), 0);
  const AgentAnswer answer = outcome.ended.get_future().get();
  EXPECT_TRUE(answer.too_long);
  EXPECT_THAT(answer.error, HasSubstr("no room in the model's context"));
}

TEST_F(Answering, EndsAQuestionWithTheService) {
  Outcome outcome;
  ASSERT_NE(service_->start(question("hangs"), outcome.hooks()), 0);
  outcome.started.get_future().wait();
  service_.reset();
  const AgentAnswer answer = outcome.ended.get_future().get();
  EXPECT_TRUE(answer.cancelled);
  EXPECT_EQ(outcome.settled, 1);
}

TEST_F(Answering, KeepsToItsTime) {
  Outcome outcome;
  AgentQuestion asked = question("hangs");
  asked.max_time = std::chrono::milliseconds(1);
  ASSERT_NE(service_->start(std::move(asked), outcome.hooks()), 0);
  const AgentAnswer answer = outcome.ended.get_future().get();
  EXPECT_THAT(answer.error, HasSubstr("the run took more than 0.001 s"));
  EXPECT_TRUE(answer.late);
}

TEST_F(Answering, SaysWhenItsOwnTimeWasTheShorterOne) {
  const auto hasty = start_agent_service(
      {.servers = folder_.path() / "servers.json", .max_time = std::chrono::milliseconds(1)});
  Outcome outcome;
  ASSERT_NE(hasty->start(question("hangs"), outcome.hooks()), 0);
  const AgentAnswer answer = outcome.ended.get_future().get();
  EXPECT_TRUE(answer.limited);
  EXPECT_FALSE(answer.late);
}

TEST(AgentServices, RefuseFilesThatNameNoServersAlone) {
  const test::TemporaryFolder folder;
  const auto failure = [&](const std::string& text) -> std::string {
    folder.write("wrong.json", text);
    try {
      start_agent_service({.servers = folder.path() / "wrong.json"});
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_THAT(failure("{"), HasSubstr("it is no JSON"));
  EXPECT_THAT(failure("{}"), HasSubstr("no server is named"));
  EXPECT_THAT(failure(R"({"tools": [{"function": {"name": "a"}, "command": ["x"]}]})"),
              HasSubstr("name `mcpServers` alone"));
  EXPECT_THAT(failure(R"({"mcpServers": {"s": {"command": "/no/such/server"}}})"),
              HasSubstr("cannot start /no/such/server"));
}

}  // namespace
}  // namespace verbatim
