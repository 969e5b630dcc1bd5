#include "serve/openai/chat_request.h"
#include "serve/prompt.h"
#include "serve/service_support.h"

namespace verbatim {
namespace {

using test::ask;
using test::Json;
using test::shared_model;
using test::shared_service;

Json chat(const Json& more = Json::object()) {
  Json request = {{"model", "target"},
                  {"messages",
                   {{{"role", "system"}, {"content", "Be brief."}},
                    {{"role", "user"}, {"content", "Write a function that adds."}}}},
                  {"max_tokens", 30},
                  {"seed", 3}};
  request.update(more);
  return request;
}

TEST(ChatCompletions, AreTheSameWholeAndStreamedWithEveryRecipe) {
  TOO_LONG_FOR_SANITIZERS();
  for (const float temperature : {0.0f, 1.0f}) {
    const Json first =
        ask(shared_service(), "/v1/chat/completions", chat({{"temperature", temperature}}))->json();
    const std::string text = first["choices"][0]["message"]["content"].get<std::string>();
    EXPECT_FALSE(text.empty());
    for (const char* const recipe : {"plain", "ml-specqd", "auto"}) {
      Json request = chat({{"temperature", temperature}, {"verbatim", {{"recipe", recipe}}}});
      const Json whole = ask(shared_service(), "/v1/chat/completions", request)->json();
      EXPECT_EQ(whole["choices"], first["choices"]) << recipe;
      request["stream"] = true;
      const std::vector<Json> events = ask(shared_service(), "/v1/chat/completions", request)->events();
      EXPECT_EQ(test::streamed_texts(events)[0], text);
      EXPECT_EQ(events.front()["choices"][0]["delta"]["role"], "assistant");
      EXPECT_EQ(events[events.size() - 2]["choices"][0]["finish_reason"],
                whole["choices"][0]["finish_reason"]);
      EXPECT_EQ(events.back()["verbatim"]["recipe"], recipe);
    }
  }
}

TEST(ChatCompletions, TellLogprobsWholeAndStreamed) {
  Json request = chat({{"logprobs", true}, {"top_logprobs", 4}});
  const Json whole = ask(shared_service(), "/v1/chat/completions", request)->json()["choices"][0];
  const Json& content = whole["logprobs"]["content"];
  std::string text;
  for (const Json& token : content) {
    for (const Json& byte : token["bytes"]) text += static_cast<char>(byte.get<int>());
    EXPECT_EQ(token["top_logprobs"].size(), 4u);
    EXPECT_GE(token["top_logprobs"][0]["logprob"], token["logprob"]);
  }
  EXPECT_EQ(text, whole["message"]["content"]);
  request["stream"] = true;
  Json streamed = Json::array();
  for (const Json& event : ask(shared_service(), "/v1/chat/completions", request)->events()) {
    const Json& part = event["choices"][0]["logprobs"];
    if (part.is_null()) continue;
    for (const Json& each : part["content"]) streamed.push_back(each);
  }
  EXPECT_EQ(streamed, content);
}

TEST(ChatCompletions, ReadPartsAsOneTextAndDevelopersAsTheSystem) {
  const Json plain = ask(shared_service(), "/v1/chat/completions", chat())->json();
  const Json parts = ask(shared_service(), "/v1/chat/completions",
                         chat({{"messages",
                                {{{"role", "developer"}, {"content", "Be brief."}},
                                 {{"role", "user"},
                                  {"content",
                                   {{{"type", "text"}, {"text", "Write a function "}},
                                    {{"type", "text"}, {"text", "that adds."}}}}}}}}))
                         ->json();
  EXPECT_EQ(plain["choices"], parts["choices"]);
  EXPECT_EQ(plain["usage"]["prompt_tokens"], parts["usage"]["prompt_tokens"]);
}

TEST(ChatCompletions, GiveEachChoiceItsOwnSeed) {
  const Json both = ask(shared_service(), "/v1/chat/completions", chat({{"n", 2}}))->json();
  const Json second = ask(shared_service(), "/v1/chat/completions", chat({{"seed", 4}}))->json();
  ASSERT_EQ(both["choices"].size(), 2u);
  EXPECT_EQ(both["choices"][1]["message"], second["choices"][0]["message"]);
}

TEST(ChatCompletions, SayOfForcedTextThatTheStructureDraftedIt) {
  const Json schema = {{"type", "object"},
                       {"properties", {{"a_rather_long_name", {{"type", "boolean"}}}}},
                       {"required", {"a_rather_long_name"}},
                       {"additionalProperties", false}};
  const Json request = chat(
      {{"stream", true},
       {"verbatim", {{"origins", true}}},
       {"response_format", {{"type", "json_schema"}, {"json_schema", {{"name", "n"}, {"schema", schema}}}}}});
  int drafted = 0;
  for (const Json& event : ask(shared_service(), "/v1/chat/completions", request)->events()) {
    if (!event.contains("verbatim") || !event["verbatim"].contains("tokens")) continue;
    for (const Json& token : event["verbatim"]["tokens"]) {
      drafted += token["origin"] == "drafted" && token["level"] == "structure" ? 1 : 0;
    }
  }
  EXPECT_GT(drafted, 2);
}

TEST(ChatCompletions, RefuseWhatMakesNoSense) {
  const auto refused = [&](const Json& more, const std::string& param) {
    const auto answer = ask(shared_service(), "/v1/chat/completions", chat(more));
    EXPECT_EQ(answer->status(), 400) << answer->text();
    EXPECT_EQ(answer->json()["error"]["param"], param) << answer->text();
    EXPECT_EQ(answer->json()["error"]["type"], "invalid_request_error");
  };
  const auto message = [](Json json) { return Json{{"messages", Json::array({std::move(json)})}}; };
  refused({{"messages", Json::array()}}, "messages");
  refused(message({{"role", "robot"}, {"content", "x"}}), "messages[0].role");
  refused(message({{"role", "user"}}), "messages[0].content");
  refused(message({{"role", "user"}, {"content", {{{"type", "image_url"}}}}}), "messages[0].content[0].type");
  refused(
      message({{"role", "user"}, {"content", {{{"type", "image_url"}, {"image_url", {{"url", "data:"}}}}}}}),
      "messages[0].content[0].image_url");
  refused(message({{"role", "tool"}, {"content", "x"}}), "messages[0].tool_call_id");
  refused(message({{"role", "user"}, {"content", "x"}, {"tool_calls", Json::array()}}),
          "messages[0].tool_calls");
  refused({{"tool_choice", "required"}}, "tool_choice");
  refused({{"tool_choice", "perhaps"}}, "tool_choice");
  refused({{"tools", {{{"type", "function"}, {"function", {{"name", "not a name"}}}}}}},
          "tools[0].function.name");
  refused({{"tools", {{{"type", "function"}, {"function", {{"name", "f"}}}}}},
           {"tool_choice", {{"type", "function"}, {"function", {{"name", "g"}}}}}},
          "tool_choice.function.name");
  refused({{"top_logprobs", 2}}, "top_logprobs");
  refused({{"stream_options", {{"include_usage", true}}}}, "stream_options");
  refused({{"max_tokens", 3}, {"max_completion_tokens", 4}}, "max_tokens");
  refused({{"response_format", {{"type", "json_schema"}}}}, "response_format.json_schema");
  refused({{"response_format", {{"type", "xml"}}}}, "response_format.type");
  refused({{"stop", {"a", "b", "c", "d", "e"}}}, "stop");
  refused({{"stop", ""}}, "stop");
}

TEST(ChatCompletions, GiveTheNamesOfAllSpeakersToTheTemplate) {
  const auto tokens = [](const Json& named) {
    Json user = {{"role", "user"}, {"content", "Hello."}};
    user.update(named);
    const serve::ChatRequest request(Json{{"messages", Json::array({user})}}.dump());
    const ChatTemplate chat_template("{% for m in messages %}{{ m.name }}: {{ m.content }}{% endfor %}");
    return serve::conversation_tokens(request.question, shared_model(), chat_template,
                                      serve::ToolStyle::kGeneric);
  };
  EXPECT_EQ(shared_model().decode(tokens({{"name", "Ada"}})), "Ada: Hello.");
  EXPECT_NE(tokens({{"name", "Ada"}}), tokens(Json::object()));
}

TEST(ChatCompletions, RefuseWhatTheyCouldNotTell) {
  const auto refused = [&](const Json& more, const std::string& param) {
    const auto answer = ask(shared_service(), "/v1/chat/completions", chat(more));
    EXPECT_EQ(answer->status(), 400) << answer->text();
    EXPECT_EQ(answer->json()["error"]["param"], param) << answer->text();
  };
  refused({{"verbatim", {{"origins", true}}}}, "verbatim.origins");
  refused({{"chat_template_kwargs", {{"messages", Json::array()}}}}, "chat_template_kwargs.messages");
  refused({{"chat_template_kwargs", {{"tools", Json::array()}}}}, "chat_template_kwargs.tools");
  refused({{"chat_template_kwargs", {{"add_generation_prompt", false}}}},
          "chat_template_kwargs.add_generation_prompt");
  refused({{"chat_template_kwargs", {{"eos_token", "x"}}}}, "chat_template_kwargs.eos_token");
  Json tools = Json::array();
  for (int i = 0; i < 200; ++i)
    tools.push_back({{"type", "function"}, {"function", {{"name", "f" + std::to_string(i)}}}});
  refused({{"tools", tools}}, "tools");
}

TEST(ChatCompletions, TakeArgumentsOfAnyDepthAndSize) {
  const auto with = [](const std::string& arguments) {
    const Json call = {
        {"id", "call_1"}, {"type", "function"}, {"function", {{"name", "f"}, {"arguments", arguments}}}};
    return chat({{"messages",
                  {{{"role", "user"}, {"content", "Call it."}},
                   {{"role", "assistant"}, {"tool_calls", Json::array({call})}},
                   {{"role", "tool"}, {"tool_call_id", "call_1"}, {"content", "It is done."}}}}});
  };
  // Their prompts are too long for the model, and the server says that.
  std::string keys = "{";
  for (int i = 0; i < 300000; ++i) keys += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":1";
  for (const std::string& arguments : {R"({"a":)" + std::string(300000, '[') + std::string(300000, ']') + "}",
                                       keys + "}", std::string(2000000, '[')}) {
    const auto answer = ask(shared_service(), "/v1/chat/completions", with(arguments));
    EXPECT_EQ(answer->status(), 400) << answer->text();
  }
  EXPECT_EQ(ask(shared_service(), "/v1/chat/completions", with(R"({"a":[1]})"))->status(), 200);
}

}  // namespace
}  // namespace verbatim
