#include "serve/responses/response_store.h"
#include "serve/service_support.h"

namespace verbatim::serve {
namespace responses_test {
namespace {

using test::ask;
using test::get;
using test::shared_service;
using test::types_of;

Json story() {
  return {{"model", "target"}, {"max_output_tokens", 24}, {"seed", 7}, {"input", "Tell me a story."}};
}

Json weather_tool() {
  return {{"type", "function"},
          {"name", "get_weather"},
          {"description", "The weather of a city"},
          {"strict", true},
          {"parameters",
           {{"type", "object"},
            {"properties", {{"city", {{"type", "string"}, {"enum", {"Paris", "Rome"}}}}}},
            {"required", {"city"}},
            {"additionalProperties", false}}}};
}

Json call_wanted() {
  Json request = story();
  request["max_output_tokens"] = 200;
  request["tools"] = Json::array({weather_tool()});
  request["tool_choice"] = "required";
  request["parallel_tool_calls"] = false;
  return request;
}

/// A response without what differs from request to request.
Json comparable(Json response) {
  for (const char* const field : {"id", "created_at", "verbatim"}) response.erase(field);
  response["usage"].erase("input_tokens_details");
  for (Json& item : response["output"]) {
    item.erase("id");
    item.erase("call_id");
  }
  return response;
}

Json without_names(Json item) {
  item.erase("id");
  item.erase("call_id");
  return item;
}

TEST(Responses, WholeAndStreamedAnswersAreTheSame) {
  for (Json request : {story(), call_wanted()}) {
    const auto whole = ask(shared_service(), "/v1/responses", request);
    ASSERT_EQ(whole->status(), 200) << whole->text();
    request["stream"] = true;
    const auto streamed = ask(shared_service(), "/v1/responses", request);
    ASSERT_TRUE(streamed->streamed()) << streamed->text();
    EXPECT_EQ(comparable(whole->json()), comparable(streamed->events().back()["response"]));
  }
}

TEST(Responses, StreamAMessagesEventsInTheirOrder) {
  Json request = story();
  request["stream"] = true;
  const auto streamed = ask(shared_service(), "/v1/responses", request);
  EXPECT_THAT(streamed->text(), testing::StartsWith("event: response.created\ndata: {"));
  EXPECT_THAT(streamed->text(), testing::Not(testing::HasSubstr("[DONE]")));
  const std::vector<Json> events = streamed->events();
  EXPECT_THAT(types_of(events),
              testing::ElementsAre("response.created", "response.in_progress", "response.output_item.added",
                                   "response.content_part.added", "response.output_text.delta",
                                   "response.output_text.done", "response.content_part.done",
                                   "response.output_item.done", "response.incomplete"));
  std::string text;
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i]["sequence_number"], i);
    if (events[i]["type"] == "response.output_text.delta") text += events[i]["delta"].get<std::string>();
    if (events[i]["type"] == "response.output_text.done") {
      EXPECT_EQ(events[i]["text"], text);
    }
  }
  const Json response = events.back()["response"];
  EXPECT_EQ(response["output"][0]["content"][0]["text"], text);
  EXPECT_EQ(response["status"], "incomplete");
  EXPECT_EQ(response["incomplete_details"]["reason"], "max_output_tokens");
}

TEST(Responses, StreamACallsEventsInTheirOrder) {
  Json request = call_wanted();
  request["stream"] = true;
  const std::vector<Json> events = ask(shared_service(), "/v1/responses", request)->events();
  EXPECT_THAT(
      types_of(events),
      testing::ElementsAre("response.created", "response.in_progress", "response.output_item.added",
                           "response.function_call_arguments.delta", "response.function_call_arguments.done",
                           "response.output_item.done", "response.completed"));
  std::string arguments;
  for (const Json& event : events) {
    if (event["type"] == "response.function_call_arguments.delta") {
      arguments += event["delta"].get<std::string>();
    }
  }
  const Json item = events.back()["response"]["output"][0];
  EXPECT_EQ(item["type"], "function_call");
  EXPECT_EQ(item["status"], "completed");
  EXPECT_EQ(item["name"], "get_weather");
  EXPECT_EQ(item["arguments"], arguments);
  EXPECT_TRUE(Json::parse(arguments).contains("city"));
}

TEST(Responses, ContinueAPreviousOneAsIfAllOfItHadBeenSent) {
  Json request = call_wanted();
  request["instructions"] = "Be brief.";
  const Json first = ask(shared_service(), "/v1/responses", request)->json();
  const Json call = first["output"][0];
  const Json result = {
      {"type", "function_call_output"}, {"call_id", call["call_id"]}, {"output", "It rains."}};
  Json second = story();
  second["max_output_tokens"] = 12;
  second["instructions"] = "Be kind.";
  Json whole = second;
  second["previous_response_id"] = first["id"];
  second["input"] = Json::array({result});
  whole["input"] = Json::array({{{"role", "user"}, {"content", "Tell me a story."}}, call, result});
  const Json continued = ask(shared_service(), "/v1/responses", second)->json();
  const Json sent = ask(shared_service(), "/v1/responses", whole)->json();
  ASSERT_EQ(continued["object"], "response") << continued;
  EXPECT_EQ(without_names(continued["output"][0]), without_names(sent["output"][0]));
  EXPECT_EQ(continued["usage"]["input_tokens"], sent["usage"]["input_tokens"]);
  EXPECT_EQ(continued["previous_response_id"], first["id"]);
  Json third = story();
  third["previous_response_id"] = continued["id"];
  EXPECT_EQ(ask(shared_service(), "/v1/responses", third)->status(), 200);
}

TEST(Responses, AreStoredAndDeleted) {
  const Json response = ask(shared_service(), "/v1/responses", story())->json();
  const std::string path = "/v1/responses/" + response["id"].get<std::string>();
  EXPECT_EQ(get(shared_service(), path)->json(), response);
  const auto deleted = test::send(shared_service(), "DELETE", path);
  ASSERT_TRUE(deleted->wait());
  EXPECT_EQ(deleted->json(), Json({{"id", response["id"]}, {"object", "response"}, {"deleted", true}}));
  EXPECT_EQ(get(shared_service(), path)->status(), 404);
  Json request = story();
  request["previous_response_id"] = response["id"];
  const auto answer = ask(shared_service(), "/v1/responses", request);
  EXPECT_EQ(answer->status(), 400);
  EXPECT_EQ(answer->json()["error"]["code"], "previous_response_not_found");
  request = story();
  request["store"] = false;
  const Json unstored = ask(shared_service(), "/v1/responses", request)->json();
  EXPECT_EQ(get(shared_service(), "/v1/responses/" + unstored["id"].get<std::string>())->status(), 404);
}

TEST(Responses, KeepToASchema) {
  Json request = story();
  request["max_output_tokens"] = 100;
  request["text"] = {
      {"format", {{"type", "json_schema"}, {"name", "city"}, {"schema", weather_tool()["parameters"]}}}};
  const Json response = ask(shared_service(), "/v1/responses", request)->json();
  EXPECT_EQ(response["status"], "completed");
  EXPECT_EQ(response["text"], request["text"]);
  EXPECT_TRUE(Json::parse(response["output"][0]["content"][0]["text"].get<std::string>()).contains("city"));
}

TEST(Responses, TellLogProbabilitiesOfTheirText) {
  Json request = story();
  request["include"] = {"message.output_text.logprobs"};
  request["top_logprobs"] = 2;
  const Json response = ask(shared_service(), "/v1/responses", request)->json();
  const Json part = response["output"][0]["content"][0];
  EXPECT_EQ(part["logprobs"].size(), 24u);
  EXPECT_EQ(part["logprobs"][0]["top_logprobs"].size(), 2u);
}

TEST(Responses, NameTheFieldsOfTheirErrors) {
  struct Case {
    const char* pointer;
    Json value;
    const char* param;
  };
  const Json image = {{"role", "user"}, {"content", {{{"type", "input_image"}, {"image_url", "x"}}}}};
  const std::vector<Case> cases = {
      {"/input", Json::array(), "input"},
      {"/input", Json::array({image}), "input[0].content[0].type"},
      {"/input", Json::array({{{"type", "item_reference"}, {"id", "x"}}}), "input[0].type"},
      {"/input", Json::array({1}), "input[0]"},
      {"/input", Json::array({{{"type", "reasoning"}, {"summary", {{{"text", "x"}}}}}}), "input[0].summary"},
      {"/tools", Json::array({{{"type", "web_search"}}}), "tools[0].type"},
      {"/tool_choice", "required", "tool_choice"},
      {"/tool_choice", {{"type", "function"}, {"name", "nothing"}}, "tool_choice.name"},
      {"/include", {"file_search_call.results"}, "include"},
      {"/background", true, "background"},
      {"/truncation", "auto", "truncation"},
      {"/reasoning", {{"effort", "high"}}, "reasoning.effort"},
      {"/text", {{"format", {{"type", "json_schema"}}}}, "text.format.schema"},
      {"/text",
       {{"format", {{"type", "json_schema"}, {"schema", {{"type", "nothing"}}}}}},
       "text.format.schema"},
      {"/metadata", {{"key", 1}}, "metadata"},
      {"/top_logprobs", 3, "top_logprobs"},
  };
  for (const Case& each : cases) {
    Json request = story();
    request[Json::json_pointer(each.pointer)] = each.value;
    const auto answer = ask(shared_service(), "/v1/responses", request);
    ASSERT_EQ(answer->status(), 400) << each.param << answer->text();
    EXPECT_EQ(answer->json()["error"]["param"], each.param) << answer->text();
  }
}

StoredResponse stored(std::string id, std::string text) {
  return {.id = std::move(id), .json = std::move(text), .messages = {}};
}

TEST(ResponseStore, ForgetsWhatWasNotUsedForTheLongestTime) {
  ResponseStore store(2);
  store.add(stored("a", "1"));
  store.add(stored("b", "2"));
  EXPECT_EQ(store.find("a")->json, "1");
  store.add(stored("c", "3"));
  EXPECT_EQ(store.find("b"), nullptr);
  EXPECT_NE(store.find("a"), nullptr);
  EXPECT_TRUE(store.remove("a"));
  EXPECT_FALSE(store.remove("a"));
  EXPECT_EQ(store.find("c")->json, "3");
}

TEST(ResponseStore, TakesNoMoreMemoryThanItMay) {
  ResponseStore store(1000, 100'000);
  for (int i = 0; i < 100; ++i) store.add(stored("id" + std::to_string(i), std::string(10'000, 'x')));
  EXPECT_EQ(store.find("id50"), nullptr);
  EXPECT_NE(store.find("id99"), nullptr);
  store.add(stored("large", std::string(200'000, 'x')));
  EXPECT_EQ(store.find("large"), nullptr);
}

TEST(ResponseStore, KeepsNothingIfItMayKeepNothing) {
  ResponseStore store(0);
  store.add(stored("a", "1"));
  EXPECT_EQ(store.find("a"), nullptr);
}

TEST(Responses, TakeArgumentsOfAnyDepthAndRefuseTooManyTools) {
  Json request = story();
  request["input"] =
      Json::array({{{"role", "user"}, {"content", "Call it."}},
                   {{"type", "function_call"},
                    {"call_id", "call_1"},
                    {"name", "f"},
                    {"arguments", R"({"a":)" + std::string(300000, '[') + std::string(300000, ']') + "}"}},
                   {{"type", "function_call_output"}, {"call_id", "call_1"}, {"output", "It is done."}}});
  EXPECT_EQ(ask(shared_service(), "/v1/responses", request)->status(), 400);
  request = story();
  request["verbatim"] = {{"origins", true}};
  EXPECT_EQ(ask(shared_service(), "/v1/responses", request)->json()["error"]["param"], "verbatim.origins");
  request = story();
  for (int i = 0; i < 200; ++i) {
    request["tools"].push_back(weather_tool());
    request["tools"].back()["name"] = "f" + std::to_string(i);
  }
  EXPECT_EQ(ask(shared_service(), "/v1/responses", request)->json()["error"]["param"], "tools");
}

}  // namespace
}  // namespace responses_test
}  // namespace verbatim::serve
