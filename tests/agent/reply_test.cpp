#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/loop/simulated_loop.h"
#include "agent/run/run.h"
#include "agent/simulated_tool.h"

namespace verbatim::agent {
namespace reply_test {
namespace {

using test::SimulatedTool;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr Duration kSecond = std::chrono::seconds(1);
constexpr size_t kWhole = size_t{1} << 40;

/// A model whose replies come in pieces of a number of bytes, a tenth of a second apart.
class PieceEndpoint : public Endpoint {
 public:
  struct Reply {
    std::string text = {};
    bool cut = false;      ///< told at the end of the text
    bool endless = false;  ///< the text comes again and again
  };

  PieceEndpoint(Loop& loop, size_t bytes, std::vector<Reply> replies)
      : loop_(loop), bytes_(bytes), replies_(std::move(replies)) {}

  std::unique_ptr<ModelStream> start(ModelRequest request, ModelHooks hooks) override {
    requests.push_back(std::move(request));
    const size_t at = requests.size() - 1;
    return std::make_unique<Stream>(*this, at < replies_.size() ? replies_[at] : Reply{}, std::move(hooks));
  }

  std::vector<ModelRequest> requests;
  size_t said = 0;     ///< bytes, of all replies
  Time dropped_at{0};  ///< when the last stream was destroyed

 private:
  class Stream : public ModelStream {
   public:
    Stream(PieceEndpoint& owner, Reply reply, ModelHooks hooks)
        : owner_(owner), reply_(std::move(reply)), hooks_(std::move(hooks)) {
      wait();
    }
    ~Stream() override {
      owner_.loop_.forget(timer_);
      owner_.dropped_at = owner_.loop_.now();
    }

   private:
    void wait() {
      timer_ = owner_.loop_.after(kSecond / 10, [this] {
        timer_ = 0;
        if (reply_.endless && at_ == reply_.text.size()) at_ = 0;
        if (at_ == reply_.text.size()) {
          const auto ended = hooks_.ended;
          ended({.cut = reply_.cut, .prompt_tokens = 10, .reply_tokens = 10});
          return;
        }
        const std::string piece = reply_.text.substr(at_, owner_.bytes_);
        at_ += piece.size();
        owner_.said += piece.size();
        wait();
        const auto told = hooks_.piece;
        told(piece);
      });
    }

    PieceEndpoint& owner_;
    Reply reply_;
    ModelHooks hooks_;
    size_t at_ = 0;
    uint64_t timer_ = 0;
  };

  Loop& loop_;
  size_t bytes_;
  std::vector<Reply> replies_;
};

/// One run with such a model and a tool `pay` that takes a number.
struct Paying {
  Paying(std::vector<PieceEndpoint::Reply> replies, RunOptions options, size_t bytes = kWhole)
      : endpoint(loop, bytes, std::move(replies)) {
    auto tool = std::make_shared<SimulatedTool>(
        loop,
        ToolDeclaration{
            .name = "pay",
            .parameters = Json::parse(
                R"({"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]})")},
        [this](const Json& arguments) {
          calls.push_back(arguments["amount"].get<int>());
          return SimulatedTool::Behaviour{kSecond, ToolResult::of("paid"), deaf, deaf};
        });
    ToolSet tools;
    tools.add({.tool = tool, .policy = Policy::kAllow});
    deaf = options.max_time <= kSecond;
    Run run(loop, endpoint, tools, options, "Why?",
            {.event =
                 [this](const RunEvent& event) {
                   if (event.kind == RunEvent::Kind::kWrong) wrong.push_back(event.text);
                 },
             .ended =
                 [this](const RunResult& end) {
                   result = end;
                   ended_at = loop.now();
                 }});
    loop.run();
  }

  /// All that was said in the last request, and what it took.
  std::string conversation() const {
    std::string text = fmt::format("{} {}\n", result.prompt_tokens, result.reply_tokens);
    for (const ModelMessage& message : endpoint.requests.back().messages)
      text += message.role + ": " + message.content + "\n";
    return text;
  }

  SimulatedLoop loop;
  PieceEndpoint endpoint;
  bool deaf = false;  ///< the tool neither answers nor can be cancelled
  std::vector<int> calls;
  std::vector<std::string> wrong;
  RunResult result;
  Time ended_at{0};
};

TEST(Replies, OfATurnAreWrittenAgainAsAWhole) {
  const RunOptions options{.strategy = RunStrategy::kParallel, .max_rounds = 9};
  const Paying again(
      {{"Action: pay(1)\nAction: pya(2)\n"}, {"Action: pay(1)\nAction: pay(2)\n"}, {"Answer: x"}}, options);
  EXPECT_EQ(again.result.answer, "x");
  EXPECT_THAT(again.calls, ElementsAre(1, 2));
  const Paying answered({{"Action: pay(1)\nAction: pya(2)\n"}, {"Answer: x"}}, options);
  EXPECT_EQ(answered.result.answer, "x");
  EXPECT_THAT(answered.calls, IsEmpty());
}

TEST(Replies, OfATurnThatWereCutAreWrong) {
  for (const RunStrategy strategy : {RunStrategy::kReact, RunStrategy::kParallel}) {
    const RunOptions options{.strategy = strategy, .max_rounds = 9};
    const Paying action({{"Action: pay(amount=100", true}, {"Action: pay(amount=1000)"}, {"Answer: x"}},
                        options);
    EXPECT_EQ(action.result.answer, "x");
    EXPECT_THAT(action.calls, ElementsAre(1000));
    EXPECT_THAT(action.wrong, ElementsAre("the reply has more than 2048 tokens"));
    const Paying answer({{"Answer: it is not", true}, {"Answer: x"}}, options);
    EXPECT_EQ(answer.result.answer, "x");
    EXPECT_THAT(Paying({{"Answer: it is", true}, {"Answer: it is", true}}, options).result.error,
                HasSubstr("has more than 2048 tokens"));
  }
}

TEST(Replies, GiveTheSameConversationHoweverTheyAreCut) {
  const std::vector<PieceEndpoint::Reply> turns = {
      {"Thought: one\nAction: pay(1)\nObservation: made up\nAnswer: made up"},
      {"Action: pya(2)\nObservation: made up"},
      {"Action: pay(2)\nThought: more"},
      {"Answer: x"}};
  const std::vector<PieceEndpoint::Reply> plans = {{"1. pay(1)\njoin()\nThought: made up\n2. pay(9)\n"},
                                                   {"Action: Replan(more)"},
                                                   {"2. pya(2)\n3. pay(9)\njoin()\nmade up"},
                                                   {"2. pay(2)\njoin()\nmade up\n"},
                                                   {"Action: Finish(x)"}};
  for (const RunStrategy strategy :
       {RunStrategy::kCompiler, RunStrategy::kReact, RunStrategy::kReactCareful, RunStrategy::kParallel}) {
    const auto& replies = strategy == RunStrategy::kCompiler ? plans : turns;
    const RunOptions options{.strategy = strategy, .shared_prompt = true, .max_rounds = 9};
    const Paying whole(replies, options);
    EXPECT_EQ(whole.result.answer, "x");
    EXPECT_THAT(whole.calls, ElementsAre(1, 2));
    if (strategy != RunStrategy::kParallel) {
      EXPECT_THAT(whole.conversation(), Not(HasSubstr("made up")));
    }
    for (const size_t bytes : {1, 4}) {
      EXPECT_EQ(Paying(replies, options, bytes).conversation(), whole.conversation()) << bytes;
    }
  }
}

TEST(Replies, AreHeldToWhatIsLeftOfTheRunsTokens) {
  const Paying run({{"1. pay(1)\njoin()\n"}, {"Action: Finish(x)"}}, {.max_tokens = 1000});
  EXPECT_EQ(run.result.answer, "x");
  ASSERT_EQ(run.endpoint.requests.size(), 2u);
  EXPECT_EQ(run.endpoint.requests[0].max_tokens, 1000);
  EXPECT_EQ(run.endpoint.requests[1].max_tokens,
            1000 - run.result.prompt_tokens - run.result.reply_tokens + 20);
  EXPECT_EQ(Paying({{"1. pay(1)\n", true}}, {.max_tokens = 15}).result.error,
            "the run has used its 15 tokens");
}

TEST(Replies, EndWhereAnEndpointGoesOnWithoutEnd) {
  for (const RunStrategy strategy : {RunStrategy::kCompiler, RunStrategy::kReact}) {
    const RunOptions options{.strategy = strategy, .max_corrections = 0, .max_reply_tokens = 10};
    const Paying run({{"Thought: on and on\n", false, true}}, options, 10);
    EXPECT_THAT(run.result.error, HasSubstr("reply has more than 10 tokens"));
    EXPECT_LE(run.endpoint.said, 10 * 16 + 10);
  }
  const Paying joiner({{"join()\n"}, {"Thought: on and on\n", false, true}}, {.max_reply_tokens = 10}, 10);
  EXPECT_THAT(joiner.result.error, HasSubstr("reply has more than 10 tokens"));
}

TEST(Replies, EndAtOnceWithTheRun) {
  const Paying talking(
      {{"1. pay(1)\nThought: on and on, and on and on, and on and on, and on and on", false, false}},
      {.max_time = kSecond}, 5);
  EXPECT_EQ(talking.result.error, "the run took more than 1 s");
  EXPECT_EQ(talking.endpoint.dropped_at, kSecond);
  EXPECT_GE(talking.ended_at, 6 * kSecond);  // the tool was given its time
}

/// A model that is held to structures, and asked for a plan of any tool but one.
TEST(Replies, HeldToAGrammarDoWithoutAToolThatItCannotHold) {
  class Held : public PieceEndpoint {
   public:
    using PieceEndpoint::PieceEndpoint;
    bool constrains() const override { return true; }
  };
  SimulatedLoop loop;
  Held endpoint(loop, kWhole, {{"1. good()\njoin()\n"}, {"Action: Finish(x)"}});
  ToolSet tools;
  for (const auto& [name, schema] :
       {std::pair<std::string, const char*>{"bad", R"({"allOf": [{"required": ["x"]}]})"}, {"good", "{}"}}) {
    tools.add({.tool = std::make_shared<SimulatedTool>(
                   loop, ToolDeclaration{.name = name, .parameters = Json::parse(schema)},
                   [](const Json&) { return SimulatedTool::Behaviour{}; }),
               .policy = Policy::kAllow});
  }
  std::vector<std::string> left_out;
  RunResult result;
  agent::Run run(loop, endpoint, tools, {}, "Why?",
                 {.event =
                      [&](const RunEvent& event) {
                        if (event.kind == RunEvent::Kind::kLeftOut) left_out.push_back(event.text);
                      },
                  .ended = [&](const RunResult& end) { result = end; }});
  loop.run();
  EXPECT_EQ(result.answer, "x");
  EXPECT_THAT(left_out, ElementsAre(HasSubstr("the tool `bad` is left out")));
  EXPECT_THAT(endpoint.requests[0].messages[0].content, Not(HasSubstr("bad(")));
}

TEST(Replies, AreNotAskedForWhereACallIsWantedAndThereIsNoTool) {
  SimulatedLoop loop;
  PieceEndpoint endpoint(loop, kWhole, {{"join()\n"}, {"Action: Finish(x)"}});
  RunResult result;
  const ToolSet none;
  agent::Run run(loop, endpoint, none, {.must_call = true}, "Why?",
                 {.ended = [&](const RunResult& end) { result = end; }});
  loop.run();
  EXPECT_EQ(result.error, "a tool has to be called, and there is none that may be");
  EXPECT_TRUE(result.no_tool);
  EXPECT_TRUE(endpoint.requests.empty());
}

}  // namespace
}  // namespace reply_test
}  // namespace verbatim::agent
