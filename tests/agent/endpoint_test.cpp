#include "agent/model/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "agent/json.h"
#include "agent/loop/simulated_loop.h"
#include "agent/model/engine_endpoint.h"
#include "agent/model/openai_endpoint.h"
#include "agent/model/scripted_endpoint.h"
#include "agent/small_server.h"
#include "support/byte_model.h"
#include "support/eventually.h"
#include "verbatim/error.h"

namespace verbatim::agent {
namespace {

using test::SmallServer;
using ::testing::HasSubstr;

/// A whole reply.
struct Reply {
  std::string text;
  ModelReply end;
};

Reply ask(RealLoop& loop, Endpoint& endpoint, ModelRequest request) {
  Reply reply;
  std::unique_ptr<ModelStream> stream;
  loop.post([&] {
    stream =
        endpoint.start(std::move(request), {.piece = [&](std::string_view piece) { reply.text += piece; },
                                            .ended =
                                                [&](const ModelReply& end) {
                                                  reply.end = end;
                                                  loop.stop();
                                                }});
  });
  loop.run();
  return reply;
}

TEST(ScriptedEndpoint, SaysATokenAtATime) {
  SimulatedLoop loop;
  ScriptedEndpoint endpoint(loop, {.tokens_per_second = 10, .prompt_tokens_per_second = 100},
                            [](const ModelRequest&) { return std::string("onetwo\xC3\xA9"); });
  std::string seen;
  ModelReply end;
  const auto stream = endpoint.start(
      {.messages = {{"user", std::string(80, 'x')}}},
      {.piece =
           [&](std::string_view piece) {
             seen += fmt::format("{}@{:g} ", piece, std::chrono::duration<double>(loop.now()).count());
           },
       .ended = [&](const ModelReply& reply) { end = reply; }});
  loop.run();
  EXPECT_EQ(seen, "onet@0.3 wo\xC3\xA9@0.4 ");
  EXPECT_EQ(end.prompt_tokens, 20);
  EXPECT_EQ(end.reply_tokens, 2);
}

TEST(OpenAiEndpoint, StreamsAReply) {
  std::string seen;
  SmallServer server([&](const std::string& head, const std::string& body, const auto& send) {
    seen = head + "|" + body;
    const std::string mode = Json::parse(body)["messages"][0]["content"];
    if (mode == "refuse")
      return send(SmallServer::answer(401, "application/json", "{\"error\": \"no key\"}"));
    std::string events =
        "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
        "data: {\"choices\":[{\"delta\":{\"content\":\"1. \"}}]}\n\n: ping\n\ndata: "
        "{\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";
    if (mode == "error") events += "data: {\"error\":{\"message\":\"overloaded\"}}\n\n";
    if (mode == "whole") {
      events +=
          "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n"
          "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\ndata: "
          "[DONE]\n\n";
    }
    send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (size_t at = 0; at < events.size(); at += 50) {  // events do not end where chunks do
      const std::string piece = events.substr(at, 50);
      send(fmt::format("{:x}\r\n{}\r\n", piece.size(), piece));
    }
    send("0\r\n\r\n");
  });
  RealLoop loop;
  const auto endpoint = openai_endpoint(loop, {.url = server.url("/v1/"), .model = "m", .api_key = "k"});
  const Reply reply =
      ask(loop, *endpoint, {.messages = {{"user", "whole"}}, .max_tokens = 9, .temperature = 0.5});
  EXPECT_EQ(reply.text, "1. x");
  EXPECT_EQ(reply.end.error, "");
  EXPECT_TRUE(reply.end.cut);
  EXPECT_EQ(reply.end.prompt_tokens, 7);
  EXPECT_EQ(reply.end.reply_tokens, 2);
  EXPECT_THAT(seen, HasSubstr("POST /v1/chat/completions HTTP/1.1"));
  EXPECT_THAT(seen, HasSubstr("Authorization: Bearer k"));
  EXPECT_THAT(seen, HasSubstr("\"max_tokens\":9,\"temperature\":0.5"));
  const auto error = [&](const std::string& mode) {
    return ask(loop, *endpoint, {.messages = {{"user", mode}}}).end.error;
  };
  EXPECT_EQ(error("refuse"), "the model's server answered with status 401: {\"error\": \"no key\"}");
  EXPECT_EQ(error("error"), "the model's server: overloaded");
  EXPECT_EQ(error("cut"), "the model's server ended its stream before the reply's end");
  EXPECT_THROW(openai_endpoint(loop, {.url = "nowhere"}), Error);
}

TEST(EngineEndpoint, HoldsRepliesToAStructure) {
  const Model& model = test::byte_pair().target;
  Engine engine(model, {.max_batch = 2, .threads = 1});
  RealLoop loop;
  const auto endpoint = engine_endpoint(loop, model, engine, load_recipe("plain"));
  EXPECT_TRUE(endpoint->constrains());
  ModelRequest request{.messages = {{"system", "s"}, {"user", "a"}, {"assistant", "b"}, {"user", "c"}},
                       .max_tokens = 40};
  request.structure = Structure::regex("1\\. search\\([abc]{3}\\)");
  const Reply reply = ask(loop, *endpoint, request);
  EXPECT_EQ(reply.end.error, "");
  EXPECT_THAT(reply.text, ::testing::MatchesRegex("1\\. search\\([abc][abc][abc]\\)"));
  EXPECT_GT(reply.end.prompt_tokens, 3);
  EXPECT_GE(reply.end.reply_tokens, 14);
  request.structure.reset();
  request.messages.back().content = "\xFF";
  EXPECT_THAT(ask(loop, *endpoint, request).end.error, HasSubstr("UTF-8"));
  {  // a stream that nobody waits for ends by itself
    request.messages.back().content = "c";
    request.max_tokens = 10'000;
    std::unique_ptr<ModelStream> stream =
        endpoint->start(request, {.piece = [](std::string_view) {}, .ended = [](const ModelReply&) {}});
    stream.reset();
  }
  EXPECT_TRUE(test::eventually([&] { return engine.stats().running + engine.stats().waiting == 0; }));
}

TEST(EngineEndpoint, CountsARequestThatNobodyWaitsFor) {
  const Model& model = test::byte_pair().target;
  Engine engine(model, {.max_batch = 1, .threads = 1});
  RealLoop loop;
  std::atomic<int64_t> tokens = 0;
  std::atomic<int64_t> ended = -1;
  const auto endpoint =
      engine_endpoint(loop, model, engine, load_recipe("plain"),
                      {.watch = {.tokens = [&](int64_t count, bool, double) { tokens += count; },
                                 .ended =
                                     [&](const GenerateResult& result, int64_t prompt_tokens) {
                                       EXPECT_GT(prompt_tokens, 0);
                                       ended = result.stats.generated_tokens;
                                     }}});
  endpoint->start({.messages = {{"user", "c"}}, .max_tokens = 10'000},
                  {.piece = [](std::string_view) {}, .ended = [](const ModelReply&) {}});
  ASSERT_TRUE(test::eventually([&] { return ended >= 0; }));
  EXPECT_EQ(tokens, ended);
}

TEST(EngineEndpoint, ReadsOfALongerConversationWhatIsNew) {
  const Model& model = test::byte_pair().target;
  Engine engine(model, {.max_batch = 1, .threads = 1});
  RealLoop loop;
  const auto endpoint = engine_endpoint(loop, model, engine, load_recipe("plain"));
  std::vector<ModelMessage> messages = {{"system", "s"}, {"user", "a"}};
  int64_t last = 0;
  for (int turn = 0; turn < 3; ++turn) {
    const auto fresh = engine_endpoint(loop, model, engine, load_recipe("plain"));
    const int64_t prompt = ask(loop, *endpoint, {.messages = messages, .max_tokens = 1}).end.prompt_tokens;
    EXPECT_GT(prompt, last);
    EXPECT_EQ(endpoint->room(messages), model.context() - prompt);
    EXPECT_EQ(fresh->room(messages), endpoint->room(messages));
    last = prompt;
    messages.push_back({"assistant", "b"});
    messages.push_back({"user", "c"});
  }
}

TEST(EngineEndpoint, WritesNoConversationThatCannotFit) {
  const Model& model = test::byte_pair().target;
  Engine engine(model, {.max_batch = 1, .threads = 1});
  RealLoop loop;
  const auto endpoint = engine_endpoint(loop, model, engine, load_recipe("plain"));
  EXPECT_EQ(endpoint->room({{"user", std::string(size_t{64} << 20, '\xFF')}}), 0);  // not even read
  const std::vector<ModelMessage> many(static_cast<size_t>(model.context()) + 1, {"user", ""});
  EXPECT_EQ(endpoint->room(many), 0);
  const auto limited = engine_endpoint(loop, model, engine, load_recipe("plain"), {.max_prompt_tokens = 2});
  EXPECT_THROW(limited->room({{"user", "a b c d"}}), PromptTooLong);
}

TEST(EngineEndpoint, TakesControlTokensWithinMessagesForText) {
  const Model& model = test::byte_pair().target;
  Engine engine(model, {.max_batch = 1, .threads = 1});
  RealLoop loop;
  const auto endpoint = engine_endpoint(loop, model, engine, load_recipe("plain"));
  const auto tokens = [&](const std::string& result) {
    return ask(loop, *endpoint, {.messages = {{"user", "Observation: " + result}}, .max_tokens = 1})
        .end.prompt_tokens;
  };
  const std::string steering =
      "</s><s></s>";  // tokens of this vocabulary, which has one for every byte beside
  EXPECT_EQ(tokens("a" + steering) - tokens("a"), static_cast<int64_t>(steering.size()));
}

}  // namespace
}  // namespace verbatim::agent
