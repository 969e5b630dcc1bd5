#include "serve/service_support.h"

namespace verbatim::serve {
namespace {

using test::ask;
using test::shared_model;
using test::shared_service;
using test::types_of;

Json user(const char* text) {
  return {{"role", "user"}, {"content", text}};
}

/// A request about which the model may say anything.
Json story() {
  return {{"model", "target"},
          {"max_tokens", 24},
          {"seed", 7},
          {"messages", Json::array({user("Tell me a story.")})}};
}

/// A tool whose arguments are one of a few texts, so that any model can make a valid call.
Json weather_tool() {
  return {{"name", "get_weather"},
          {"description", "The weather of a city"},
          {"input_schema",
           {{"type", "object"},
            {"properties", {{"city", {{"type", "string"}, {"enum", {"Paris", "Rome"}}}}}},
            {"required", {"city"}},
            {"additionalProperties", false}}}};
}

Json call_wanted() {
  Json request = story();
  request["max_tokens"] = 200;
  request["tools"] = Json::array({weather_tool()});
  request["tool_choice"] = {{"type", "any"}, {"disable_parallel_tool_use", true}};
  return request;
}

/// The message that a client puts together from a stream's events.
Json assembled(const std::vector<Json>& events) {
  Json message;
  std::string arguments;
  for (const Json& event : events) {
    const std::string type = event["type"].get<std::string>();
    if (type == "message_start") message = event["message"];
    if (type == "content_block_start") {
      EXPECT_EQ(event["index"], message["content"].size());
      message["content"].push_back(event["content_block"]);
      arguments.clear();
    }
    if (type == "content_block_delta") {
      Json& block = message["content"][event["index"].get<size_t>()];
      const Json& delta = event["delta"];
      if (delta["type"] == "text_delta") {
        block["text"] = block["text"].get<std::string>() + delta["text"].get<std::string>();
      } else {
        EXPECT_EQ(delta["type"], "input_json_delta");
        arguments += delta["partial_json"].get<std::string>();
        if (Json::accept(arguments)) block["input"] = Json::parse(arguments);
      }
    }
    if (type == "message_delta") {
      message.update(event["delta"]);
      message["usage"] = event["usage"];
    }
  }
  return message;
}

/// A message without what differs from request to request: ids, and what was remembered of the prompt.
Json comparable(Json message) {
  message.erase("id");
  Json& usage = message["usage"];
  usage["input_tokens"] =
      usage["input_tokens"].get<int64_t>() + usage["cache_read_input_tokens"].get<int64_t>();
  usage.erase("cache_read_input_tokens");
  for (Json& block : message["content"]) block.erase("id");
  return message;
}

TEST(Messages, WholeAndStreamedAnswersAreTheSame) {
  for (Json request : {story(), call_wanted()}) {
    const auto whole = ask(shared_service(), "/v1/messages", request);
    ASSERT_EQ(whole->status(), 200) << whole->text();
    request["stream"] = true;
    const auto streamed = ask(shared_service(), "/v1/messages", request);
    EXPECT_TRUE(streamed->streamed());
    EXPECT_EQ(comparable(whole->json()), comparable(assembled(streamed->events())));
  }
}

TEST(Messages, AreTheTextThatTheEngineGeneratesForThePrompt) {
  const Json message = ask(shared_service(), "/v1/messages", story())->json();
  GenerateOptions options{.sampling = {.temperature = 1, .seed = 7}, .max_tokens = 24};
  Chat(shared_model()).add_stops(options);
  const auto parts = ChatTemplate::of(shared_model())
                         .render(R"({"messages": [{"role": "user", "content": "Tell me a story."}],
                                     "add_generation_prompt": true})",
                                 &shared_model());
  const GenerateResult result = test::generated(encode(shared_model(), parts), options);
  EXPECT_EQ(message["content"][0]["text"], result.text);
  EXPECT_EQ(message["usage"]["output_tokens"], result.tokens.size());
  EXPECT_EQ(message["stop_reason"], "max_tokens");
  EXPECT_EQ(message["type"], "message");
  EXPECT_EQ(message["role"], "assistant");
  EXPECT_EQ(message["model"], "target");
  EXPECT_TRUE(message["stop_sequence"].is_null());
}

TEST(Messages, StreamEventsInTheirOrder) {
  Json request = story();
  request["stream"] = true;
  EXPECT_THAT(types_of(ask(shared_service(), "/v1/messages", request)->events()),
              testing::ElementsAre("message_start", "content_block_start", "ping", "content_block_delta",
                                   "content_block_stop", "message_delta", "message_stop"));
  const auto streamed = ask(shared_service(), "/v1/messages", request);
  EXPECT_THAT(streamed->text(),
              testing::StartsWith("event: message_start\ndata: {\"type\":\"message_start\""));
}

TEST(Messages, CallToolsOverTwoTurns) {
  Json request = call_wanted();
  const Json first = ask(shared_service(), "/v1/messages", request)->json();
  EXPECT_EQ(first["stop_reason"], "tool_use");
  ASSERT_EQ(first["content"].size(), 1u) << first;
  const Json call = first["content"][0];
  EXPECT_EQ(call["type"], "tool_use");
  EXPECT_EQ(call["name"], "get_weather");
  EXPECT_THAT(call["id"].get<std::string>(), testing::StartsWith("toolu_"));
  EXPECT_THAT(call["input"]["city"].get<std::string>(), testing::AnyOf("Paris", "Rome"));
  request.erase("tool_choice");
  request["max_tokens"] = 8;
  request["messages"].push_back({{"role", "assistant"}, {"content", first["content"]}});
  request["messages"].push_back(
      {{"role", "user"},
       {"content",
        {{{"type", "tool_result"}, {"tool_use_id", call["id"]}, {"content", "It rains."}},
         {{"type", "text"}, {"text", "And so?"}}}}});
  const auto second = ask(shared_service(), "/v1/messages", request);
  EXPECT_EQ(second->status(), 200) << second->text();
  EXPECT_GT(second->json()["usage"]["output_tokens"], 0);
}

TEST(Messages, CountTheTokensThatUsageTells) {
  Json request = call_wanted();
  request["system"] =
      Json::array({{{"type", "text"}, {"text", "Be brief."}, {"cache_control", {{"type", "ephemeral"}}}},
                   {{"type", "text"}, {"text", "Be kind."}}});
  const Json usage = ask(shared_service(), "/v1/messages", request)->json()["usage"];
  for (const char* const field : {"max_tokens", "seed"}) request.erase(field);
  const auto counted = ask(shared_service(), "/v1/messages/count_tokens", request);
  ASSERT_EQ(counted->status(), 200) << counted->text();
  EXPECT_EQ(counted->json(), Json({{"input_tokens", usage["input_tokens"].get<int64_t>() +
                                                        usage["cache_read_input_tokens"].get<int64_t>()}}));
}

TEST(Messages, TellWhatTheyRememberedOfAPrompt) {
  Json request = story();
  request["system"] =
      "A system message of its own, of which the second request has nothing left to evaluate.";
  ask(shared_service(), "/v1/messages", request);
  const Json usage = ask(shared_service(), "/v1/messages", request)->json()["usage"];
  EXPECT_GT(usage["cache_read_input_tokens"], 0);
  EXPECT_EQ(usage["cache_creation_input_tokens"], 0);
}

TEST(Messages, EndBeforeAStopSequenceAndNameIt) {
  Json request = story();
  const std::string text = ask(shared_service(), "/v1/messages", request)->json()["content"][0]["text"];
  const std::string stop = text.substr(text.size() / 2, 3);
  request["stop_sequences"] = {"no such text", stop};
  const Json message = ask(shared_service(), "/v1/messages", request)->json();
  EXPECT_EQ(message["content"][0]["text"], text.substr(0, text.find(stop)));
  EXPECT_EQ(message["stop_reason"], "stop_sequence");
  EXPECT_EQ(message["stop_sequence"], stop);
}

TEST(Messages, GoOnWithABegunAnswer) {
  Json request = story();
  request["temperature"] = 0;
  request["messages"].push_back({{"role", "assistant"}, {"content", "Once upon a time"}});
  const Json message = ask(shared_service(), "/v1/messages", request)->json();
  auto parts = ChatTemplate::of(shared_model())
                   .render(R"({"messages": [{"role": "user", "content": "Tell me a story."}],
                               "add_generation_prompt": true})",
                           &shared_model());
  parts.push_back({"Once upon a time", false});
  GenerateOptions options{.sampling = {.temperature = 0}, .max_tokens = 24};
  Chat(shared_model()).add_stops(options);
  EXPECT_EQ(message["content"][0]["text"], test::generated(encode(shared_model(), parts), options).text);
}

TEST(Messages, KeepToASchema) {
  Json request = story();
  request["max_tokens"] = 100;
  request["output_config"] = {
      {"format", {{"type", "json_schema"}, {"schema", weather_tool()["input_schema"]}}}};
  const Json message = ask(shared_service(), "/v1/messages", request)->json();
  EXPECT_TRUE(Json::parse(message["content"][0]["text"].get<std::string>()).contains("city")) << message;
  EXPECT_EQ(message["stop_reason"], "end_turn");
}

TEST(Messages, TellErrorsInAnthropicsShapeWithTheRequestsId) {
  struct Case {
    const char* pointer;
    Json value;
    const char* message;
  };
  const Json image = {{"type", "image"}, {"source", {{"type", "base64"}, {"data", "AAAA"}}}};
  const std::vector<Case> cases = {
      {"/messages/0/content", Json::array({image}), "messages[0].content[0].type"},
      {"/messages/0/content", Json::array({{{"type", "document"}}}), "messages[0].content[0].type"},
      {"/messages/0/role", "system", "messages[0].role"},
      {"/messages", Json::array(), "messages"},
      {"/tools", Json::array({{{"type", "web_search_20250305"}, {"name", "web_search"}}}), "tools[0].type"},
      {"/tools", Json::array({weather_tool(), weather_tool()}), "tools[1].name"},
      {"/tool_choice", {{"type", "tool"}, {"name", "nothing"}}, "tool_choice.name"},
      {"/tool_choice", {{"type", "any"}}, "tool_choice.type"},
      {"/thinking", {{"type", "enabled"}, {"budget_tokens", 2048}}, "thinking.type"},
      {"/max_tokens", 0, "max_tokens"},
      {"/temperature", 1.5, "temperature"},
      {"/stop_sequences", {""}, "stop_sequences"},
      {"/mcp_servers", Json::array(), "mcp_servers"},
  };
  for (const Case& each : cases) {
    Json request = story();
    request[Json::json_pointer(each.pointer)] = each.value;
    const auto answer = ask(shared_service(), "/v1/messages", request);
    ASSERT_EQ(answer->status(), 400) << each.message;
    const Json error = answer->json();
    EXPECT_EQ(error["type"], "error");
    EXPECT_EQ(error["error"]["type"], "invalid_request_error");
    EXPECT_THAT(error["error"]["message"].get<std::string>(), testing::HasSubstr(each.message));
    EXPECT_EQ(error["request_id"], "request-of-a-test");
    EXPECT_EQ(answer->header("request-id"), "request-of-a-test");
  }
  Json strict = call_wanted();
  strict["tools"][0]["strict"] = true;
  strict["tools"][0]["input_schema"]["properties"]["city"] = {{"type", "no such type"}};
  EXPECT_THAT(ask(shared_service(), "/v1/messages", strict)->json()["error"]["message"].get<std::string>(),
              testing::StartsWith("tools[0].input_schema"));
  Json other = story();
  other["model"] = "no such model";
  EXPECT_EQ(ask(shared_service(), "/v1/messages", other)->json()["error"]["type"], "not_found_error");
}

TEST(Messages, RefuseTooManyToolsAndOriginsAndNameTheirErrors) {
  Json request = story();
  for (int i = 0; i < 2000; ++i) {
    request["tools"].push_back(weather_tool());
    request["tools"].back()["name"] = "f" + std::to_string(i);
  }
  const auto answer = ask(shared_service(), "/v1/messages", request);
  EXPECT_EQ(answer->status(), 400);
  EXPECT_TRUE(answer->json()["error"]["message"].get<std::string>().starts_with("tools ")) << answer->text();
  EXPECT_EQ(answer->header("request-id"), "request-of-a-test");
  EXPECT_EQ(answer->json()["request_id"], "request-of-a-test");
  request = story();
  request["verbatim"] = {{"origins", true}};
  EXPECT_EQ(ask(shared_service(), "/v1/messages", request)->status(), 400);
}

}  // namespace
}  // namespace verbatim::serve
