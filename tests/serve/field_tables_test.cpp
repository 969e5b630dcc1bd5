#include "serve/anthropic/endpoints.h"
#include "serve/extension.h"
#include "serve/openai/endpoints.h"
#include "serve/responses/endpoints.h"
#include "serve/service_support.h"

namespace verbatim::serve {
namespace {

using test::ask;
using test::shared_service;

/// A table of fields, and a good request in which `place` is where its object is.
struct Place {
  const char* name;
  const char* endpoint;
  FieldTable table;
  Json request;
  const char* pointer;  ///< of JSON, to the object
  const char* path;     ///< of the object as errors name it
};

const std::vector<Place>& places() {
  static const std::vector<Place> all = [] {
    const Json completion = {{"prompt", "a"},
                             {"max_tokens", 1},
                             {"stream", true},
                             {"stream_options", Json::object()},
                             {"verbatim", Json::object()}};
    const Json function = {{"name", "f"}};
    const Json tool = {{"type", "function"}, {"function", function}};
    Json chat = {{"messages", {{{"role", "user"}, {"content", {{{"type", "text"}, {"text", "a"}}}}}}},
                 {"max_tokens", 1},
                 {"tools", Json::array({tool})}};
    Json format = {{"messages", {{{"role", "user"}, {"content", "a"}}}},
                   {"max_tokens", 1},
                   {"response_format",
                    {{"type", "json_schema"}, {"json_schema", {{"name", "n"}, {"schema", Json::object()}}}}}};
    const Json schema = {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
    const Json message = Json::parse(R"({
        "model": "target", "max_tokens": 1,
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "a"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "i", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "i", "content": "b"}]}],
        "tools": [{"name": "f", "input_schema": {"type": "object"}}], "tool_choice": {"type": "auto"},
        "thinking": {"type": "disabled"}})");
    Json formed = {{"model", "target"},
                   {"max_tokens", 1},
                   {"messages", {{{"role", "user"}, {"content", "a"}}}},
                   {"output_config", {{"format", {{"type", "json_schema"}, {"schema", schema}}}}}};
    Json counted = message;
    counted.erase("max_tokens");
    const Json response = Json::parse(R"({
        "model": "target", "max_output_tokens": 1,
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "a"}]},
            {"type": "function_call", "call_id": "i", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "i", "output": "b"},
            {"type": "reasoning", "summary": []}, {"type": "mcp_list_tools"}, {"type": "mcp_call"}],
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
        "tool_choice": {"type": "function", "name": "f"}, "reasoning": {},
        "text": {"format": {"type": "text"}}, "stream": true, "stream_options": {}})");
    Json response_format = {{"max_output_tokens", 1},
                            {"input", "a"},
                            {"text", {{"format", {{"type", "json_schema"}, {"schema", schema}}}}}};
    const Json tools = Json::parse(R"({"input": "a", "max_tool_calls": 1,
        "tools": [{"type": "mcp", "server_label": "s"}]})");
    return std::vector<Place>{
        {"POST /v1/messages", "/v1/messages", kMessagesFields, message, "", ""},
        {"POST /v1/messages/count_tokens", "/v1/messages/count_tokens", kCountTokensFields, counted, "", ""},
        {"a message of Anthropic's", "/v1/messages", kMessagesMessageFields, message, "/messages/0",
         "messages[0]"},
        {"a block of text", "/v1/messages", kTextBlockFields, message, "/messages/0/content/0",
         "messages[0].content[0]"},
        {"a block that is a call", "/v1/messages", kToolUseBlockFields, message, "/messages/1/content/0",
         "messages[1].content[0]"},
        {"a block that is a result", "/v1/messages", kToolResultBlockFields, message, "/messages/2/content/0",
         "messages[2].content[0]"},
        {"a tool of Anthropic's", "/v1/messages", kMessagesToolFields, message, "/tools/0", "tools[0]"},
        {"Anthropic's `tool_choice`", "/v1/messages", kMessagesToolChoiceFields, message, "/tool_choice",
         "tool_choice"},
        {"`thinking`", "/v1/messages", kThinkingFields, message, "/thinking", "thinking"},
        {"`output_config`", "/v1/messages", kOutputConfigFields, formed, "/output_config", "output_config"},
        {"`output_config.format`", "/v1/messages", kOutputFormatFields, formed, "/output_config/format",
         "output_config.format"},
        {"POST /v1/responses", "/v1/responses", kResponsesFields, response, "", ""},
        {"an item that is a message", "/v1/responses", kInputMessageFields, response, "/input/0", "input[0]"},
        {"a part of an item", "/v1/responses", kInputPartFields, response, "/input/0/content/0",
         "input[0].content[0]"},
        {"an item that is a call", "/v1/responses", kInputCallFields, response, "/input/1", "input[1]"},
        {"an item that is a result", "/v1/responses", kInputResultFields, response, "/input/2", "input[2]"},
        {"an item that is reasoning", "/v1/responses", kInputReasoningFields, response, "/input/3",
         "input[3]"},
        {"an item that lists tools", "/v1/responses", kInputListedFields, response, "/input/4", "input[4]"},
        {"an item that is a call of a server's tool", "/v1/responses", kInputRunCallFields, response,
         "/input/5", "input[5]"},
        {"tools of a server", "/v1/responses", kResponsesServerFields, tools, "/tools/0", "tools[0]"},
        {"a tool of a response", "/v1/responses", kResponsesToolFields, response, "/tools/0", "tools[0]"},
        {"the `tool_choice` of a response", "/v1/responses", kResponsesToolChoiceFields, response,
         "/tool_choice", "tool_choice"},
        {"`text`", "/v1/responses", kResponsesTextFields, response, "/text", "text"},
        {"`text.format`", "/v1/responses", kTextFormatFields, response_format, "/text/format", "text.format"},
        {"`reasoning`", "/v1/responses", kReasoningFields, response, "/reasoning", "reasoning"},
        {"the `stream_options` of a response", "/v1/responses", kResponsesStreamFields, response,
         "/stream_options", "stream_options"},
        {"POST /v1/completions", "/v1/completions", kCompletionsFields, completion, "", ""},
        {"`stream_options`", "/v1/completions", kStreamOptionsFields, completion, "/stream_options",
         "stream_options"},
        {"`verbatim`", "/v1/completions", kExtensionFields, completion, "/verbatim", "verbatim"},
        {"POST /v1/chat/completions", "/v1/chat/completions", kChatFields, chat, "", ""},
        {"a message", "/v1/chat/completions", kChatMessageFields, chat, "/messages/0", "messages[0]"},
        {"a part of a message", "/v1/chat/completions", kChatPartFields, chat, "/messages/0/content/0",
         "messages[0].content[0]"},
        {"a tool", "/v1/chat/completions", kChatToolFields, chat, "/tools/0", "tools[0]"},
        {"a tool's function", "/v1/chat/completions", kChatFunctionFields, chat, "/tools/0/function",
         "tools[0].function"},
        {"`response_format`", "/v1/chat/completions", kResponseFormatFields, format, "/response_format",
         "response_format"},
        {"`response_format.json_schema`", "/v1/chat/completions", kJsonSchemaFields, format,
         "/response_format/json_schema", "response_format.json_schema"},
        {"POST /v1/embeddings", "/v1/embeddings", kEmbeddingsFields, {{"input", "a"}}, "", ""},
        {"POST /tokenize", "/tokenize", kTokenizeFields, {{"content", "a"}}, "", ""},
        {"POST /detokenize", "/detokenize", kDetokenizeFields, {{"tokens", {5}}}, "", ""},
    };
  }();
  return all;
}

/// Values of every type of JSON.
const std::vector<Json> kValues = {true, 1, 0.5, "text", Json::array({Json::object()}), Json::object()};

bool is_of(const Json& value, FieldType type) {
  switch (type) {
    case FieldType::kBoolean:
      return value.is_boolean();
    case FieldType::kInteger:
      return value.is_number_integer();
    case FieldType::kNumber:
      return value.is_number();
    case FieldType::kText:
    case FieldType::kTextOrTexts:
      return value.is_string();
    case FieldType::kTextOrList:
      return value.is_string() || value.is_array();
    case FieldType::kTextOrObject:
      return value.is_string() || value.is_object();
    case FieldType::kBooleanOrInteger:
      return value.is_boolean() || value.is_number_integer();
    case FieldType::kList:
      return value.is_array();
    case FieldType::kObject:
      return value.is_object();
    case FieldType::kAny:
      return true;
  }
  return false;
}

void expect_refused(const Place& place, const std::string& field, const Json& value) {
  Json request = place.request;
  request[Json::json_pointer(place.pointer)][field] = value;
  const auto answer = ask(shared_service(), place.endpoint, request);
  const std::string path = *place.path == '\0' ? field : std::string(place.path) + "." + field;
  ASSERT_EQ(answer->status(), 400) << path << " = " << value << ": " << answer->text();
  const Json error = answer->json()["error"];
  if (dialect_of(place.endpoint) == Dialect::kOpenAi) {
    EXPECT_EQ(error["param"], path) << answer->text();
  }
  EXPECT_EQ(error["type"], "invalid_request_error");
  EXPECT_THAT(error["message"].get<std::string>(), testing::HasSubstr(path));
}

TEST(FieldTables, EveryFieldOfEveryEndpointRefusesOtherTypesByName) {
  int64_t count = 0;
  for (const Place& place : places()) {
    SCOPED_TRACE(place.name);
    for (const Field& field : place.table) {
      for (const Json& value : kValues) {
        const bool refused = field.use == FieldUse::kRefused || field.use == FieldUse::kOnly;
        if (is_of(value, field.type) && !refused) continue;
        if (field.accepted.find(value.dump()) != std::string_view::npos && !field.accepted.empty()) continue;
        expect_refused(place, std::string(field.name), value);
        ++count;
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GT(count, 300);
}

TEST(FieldTables, NumbersOutOfRangeAreRefusedByName) {
  for (const Place& place : places()) {
    for (const Field& field : place.table) {
      if (field.type != FieldType::kInteger && field.type != FieldType::kNumber) continue;
      if (field.use == FieldUse::kOnly) continue;
      if (field.least > -1e17) expect_refused(place, std::string(field.name), field.least - 1);
      if (field.most < 1e17) expect_refused(place, std::string(field.name), field.most * 2 + 1);
    }
  }
}

TEST(FieldTables, UnknownFieldsAreRefusedByNameAndNullIsAbsent) {
  for (const Place& place : places()) {
    SCOPED_TRACE(place.name);
    expect_refused(place, "temprature", 1);
    if (place.table.data() == kJsonSchemaFields.data()) continue;  // its answers take long
    Json request = place.request;
    for (const Field& field : place.table) {
      Json& object = request[Json::json_pointer(place.pointer)];
      if (!object.contains(std::string(field.name))) object[std::string(field.name)] = nullptr;
    }
    EXPECT_EQ(ask(shared_service(), place.endpoint, request)->status(), 200) << request;
  }
}

TEST(FieldTables, WhatIsRequiredIsMissedByName) {
  for (const Place& place : places()) {
    for (const Field& field : place.table) {
      if (!field.required) continue;
      Json request = place.request;
      request[Json::json_pointer(place.pointer)].erase(std::string(field.name));
      const auto answer = ask(shared_service(), place.endpoint, request);
      ASSERT_EQ(answer->status(), 400) << request;
      EXPECT_THAT(answer->json()["error"]["message"].get<std::string>(),
                  testing::HasSubstr(std::string(field.name)));
      if (dialect_of(place.endpoint) != Dialect::kOpenAi) continue;
      EXPECT_THAT(answer->json()["error"]["param"].get<std::string>(),
                  testing::EndsWith(std::string(field.name)));
    }
  }
}

TEST(FieldTables, HarmlessFieldsAreTaken) {
  for (const Place& place : places()) {
    for (const Field& field : place.table) {
      if (field.use != FieldUse::kHarmless) continue;
      if (place.table.data() == kJsonSchemaFields.data()) continue;
      for (const Json& value : kValues) {
        if (!is_of(value, field.type)) continue;
        Json request = place.request;
        request[Json::json_pointer(place.pointer)][std::string(field.name)] = value;
        EXPECT_EQ(ask(shared_service(), place.endpoint, request)->status(), 200) << field.name;
      }
    }
  }
}

/// A table as docs/server-fields.md has it.
std::string documented(const Place& place) {
  std::string text = std::string("| field of ") + place.name + " | type | | |\n|---|---|---|---|\n";
  for (const Field& field : place.table) {
    const char* const use = field.use == FieldUse::kDone       ? "done"
                            : field.use == FieldUse::kHarmless ? "no effect"
                            : field.use == FieldUse::kRefused  ? "refused"
                                                               : "only ";
    std::string accepted;
    for (const char c : field.accepted) accepted += c == ' ' ? std::string("`, `") : std::string(1, c);
    if (!accepted.empty()) accepted = "`" + accepted + "`";
    text += fmt::format("| `{}`{} | {} | {}{} | {} |\n", field.name, field.required ? " (required)" : "",
                        field.use == FieldUse::kRefused ? "" : describe(field), use, accepted, field.note);
  }
  return text;
}

TEST(FieldTables, AreThoseOfTheDocumentation) {
  const std::string page =
      test::read_file(test::default_model().parent_path().parent_path() / "docs" / "server-fields.md");
  for (const Place& place : places()) {
    EXPECT_NE(page.find(documented(place)), std::string::npos)
        << "docs/server-fields.md should have this table:\n\n"
        << documented(place);
  }
}

TEST(RequestBodies, ThatAreNoJsonAreRefused) {
  const auto refused = [](const std::string& body) {
    const auto exchange = test::send(shared_service(), "POST", "/v1/completions", body);
    ASSERT_TRUE(exchange->wait());
    EXPECT_EQ(exchange->status(), 400) << body.substr(0, 100);
    EXPECT_LT(exchange->text().size(), 2000u);
  };
  refused("");
  refused("{");
  refused("[]");
  refused("\"text\"");
  refused("{\"prompt\": \"a\"} x");
  refused("{\"prompt\": \"\xff\"}");
  refused("{\"prompt\": \"\\ud800\"}");
  refused("{\"prompt\": 1e999}");
  refused("{\"prompt\": \"a\", \"prompt\": \"b\"}");
  refused("{\"verbatim\": {\"recipe\": \"a\", \"recipe\": \"b\"}}");
  refused(std::string(100'000, '['));
  refused("{\"prompt\":" + std::string(70, '[') + std::string(70, ']') + "}");
  std::string deep;
  for (int i = 0; i < 50'000; ++i) deep += "{\"a\":";
  refused(deep);
  std::string many = "{\"a\":{\"0\":0";
  for (int i = 1; i < 5000; ++i) many += fmt::format(",\"{}\":0", i);
  refused(many + "}}");
  refused("{\"" + std::string(1'000'000, 'x') + "\": 1}");
  refused("{\"prompt\": \"" + std::string(1'000'000, 'x'));
}

}  // namespace
}  // namespace verbatim::serve
