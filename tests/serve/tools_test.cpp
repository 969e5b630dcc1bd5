#include "serve/errors.h"
#include "serve/prompt.h"
#include "serve/service_support.h"
#include "serve/tools/forms.h"

namespace verbatim::serve {
namespace {

using test::shared_model;

Question asked() {
  Question question;
  question.messages = {{.role = "user", .content = "Which weather?"}};
  const Json schema = Json::parse(
      R"({"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}, "days": {"enum": [1, 2]}},
          "required": ["city", "days"], "additionalProperties": false})");
  question.tools = {{.name = "weather", .description = "", .parameters = schema},
                    {.name = "time", .description = "", .parameters = nullptr}};
  question.parallel_tool_calls = false;
  return question;
}

constexpr ToolStyle kStyles[] = {ToolStyle::kHermes, ToolStyle::kLlama3, ToolStyle::kMistral,
                                 ToolStyle::kGeneric};

/// What a model says that is held to a question's structure, as the parser reads it.
std::vector<ReplyEvent> reply_to(const Question& question, ToolStyle style, uint64_t seed,
                                 const char* recipe = "plain") {
  GenerateOptions options{.sampling = {.temperature = 1, .seed = seed}, .max_tokens = 120};
  options.structure = reply_structure(question, style);
  const GenerateResult result =
      test::generated(shared_model().encode("Question: Which weather?\nAnswer:"), options, recipe);
  EXPECT_EQ(result.stats.finish, FinishReason::kEndOfSequence) << result.text;
  ReplyParser parser(question, style);
  std::vector<ReplyEvent> events = parser.push(result.text);
  for (ReplyEvent& event : parser.finish()) events.push_back(std::move(event));
  return events;
}

TEST(ToolStyles, OfBuiltInTemplates) {
  EXPECT_EQ(tool_style(ChatTemplate::built_in("chatml")), ToolStyle::kHermes);
  EXPECT_EQ(tool_style(ChatTemplate::built_in("llama-3")), ToolStyle::kLlama3);
  EXPECT_EQ(tool_style(ChatTemplate::built_in("mistral")), ToolStyle::kMistral);
  for (const char* const format : {"llama-2", "plain"}) {
    EXPECT_EQ(tool_style(ChatTemplate::built_in(format)), ToolStyle::kGeneric);
  }
  for (const std::string& format : chat_format_names()) {
    const ChatTemplate built_in = ChatTemplate::built_in(format);
    EXPECT_TRUE(describes_calls(built_in, tool_style(built_in))) << format;
  }
}

TEST(ToolStructures, OfRequiredCallsAreReadAsOneCallInEveryStyle) {
  Question question = asked();
  question.tool_choice.kind = ToolChoice::Kind::kRequired;
  for (const ToolStyle style : kStyles) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      const std::vector<ReplyEvent> events = reply_to(question, style, seed);
      ASSERT_EQ(events.size(), 3u) << static_cast<int>(style);
      EXPECT_EQ(events[0].kind, ReplyEvent::Kind::kToolBegin);
      EXPECT_EQ(events[2].kind, ReplyEvent::Kind::kToolEnd);
      const Json arguments = Json::parse(events[1].text);
      if (events[0].name == "time") {
        EXPECT_EQ(arguments, Json::object());
      } else {
        EXPECT_EQ(arguments.size(), 2u);
      }
    }
  }
}

TEST(ToolStructures, OfANamedCallHaveThatTool) {
  Question question = asked();
  question.tool_choice = {.kind = ToolChoice::Kind::kNamed, .name = "time"};
  for (const ToolStyle style : kStyles) EXPECT_EQ(reply_to(question, style, 5).at(0).name, "time");
}

TEST(ToolStructures, GiveTheSameCallsPlainAndDrafted) {
  Question question = asked();
  question.tool_choice.kind = ToolChoice::Kind::kRequired;
  for (const ToolStyle style : kStyles) {
    const auto plain = reply_to(question, style, 3);
    const auto drafted = reply_to(question, style, 3, "ml-specqd");
    ASSERT_EQ(plain.size(), drafted.size());
    for (size_t i = 0; i < plain.size(); ++i) {
      EXPECT_EQ(plain[i].text, drafted[i].text);
      EXPECT_EQ(plain[i].name, drafted[i].name);
    }
  }
}

TEST(ToolStructures, OfFreeChoiceLeaveWordsInWhichNoCallBegins) {
  Question question = asked();
  question.parallel_tool_calls = true;
  for (const ToolStyle style : kStyles) {
    GenerateOptions options{.sampling = {.temperature = 1, .seed = 11}, .max_tokens = 40};
    options.structure = reply_structure(question, style);
    const std::vector<int32_t> prompt = shared_model().encode("Question: Which weather?\nAnswer:");
    const std::string text = test::generated(prompt, options).text;
    EXPECT_EQ(test::generated(prompt, options, "ml-specqd").text, text);
    ReplyParser parser(question, style);
    std::vector<ReplyEvent> events = parser.push(text);
    for (ReplyEvent& event : parser.finish()) events.push_back(std::move(event));
    ASSERT_EQ(events.size(), 1u) << text;
    EXPECT_EQ(events[0].text, text);
    options.structure.reset();
    EXPECT_EQ(test::generated(prompt, options).text, text);  // what the model would have said anyway
  }
}

TEST(ToolStructures, OfParallelCallsAreReadAsOneAfterTheOther) {
  Question question = asked();
  question.tools.pop_back();
  question.tool_choice.kind = ToolChoice::Kind::kRequired;
  question.parallel_tool_calls = true;
  for (const ToolStyle style : {ToolStyle::kHermes, ToolStyle::kMistral, ToolStyle::kGeneric}) {
    GenerateOptions options{.sampling = {.temperature = 1, .seed = 2}, .max_tokens = 150};
    options.structure = reply_structure(question, style);
    const std::string text = test::generated(shared_model().encode("a"), options).text;
    ReplyParser parser(question, style);
    std::vector<ReplyEvent> events = parser.push(text);
    for (size_t i = 0; i + 2 < events.size(); i += 3) {
      EXPECT_EQ(events[i].kind, ReplyEvent::Kind::kToolBegin) << text;
      EXPECT_EQ(events[i + 2].kind, ReplyEvent::Kind::kToolEnd) << text;
    }
    EXPECT_GE(events.size(), 3u) << text;
  }
}

TEST(ToolStructures, OfAFormatAloneAreTheFormat) {
  Question question;
  EXPECT_FALSE(reply_structure(question, ToolStyle::kHermes));
  question.format = {.kind = ReplyFormat::Kind::kJsonSchema, .schema = R"({"enum": ["only this"]})"};
  GenerateOptions options{.max_tokens = 20};
  options.structure = reply_structure(question, ToolStyle::kHermes);
  EXPECT_EQ(test::generated(shared_model().encode("a"), options).text, "\"only this\"");
}

TEST(ToolStructures, RefuseBadSchemasOfStrictToolsAlone) {
  Question question = asked();
  question.tools[0].parameters["properties"]["city"] = {{"type", "no type"}};
  question.tool_choice.kind = ToolChoice::Kind::kRequired;
  EXPECT_TRUE(reply_structure(question, ToolStyle::kHermes));
  question.tools[0].strict = true;
  try {
    reply_structure(question, ToolStyle::kHermes);
    FAIL() << "a strict tool's schema was taken";
  } catch (const HttpError& error) {
    EXPECT_EQ(error.status, 400);
    EXPECT_EQ(error.param, "tools[0].function.parameters");
  }
  question.tools[0].parameters = {{"type", "string"}};
  EXPECT_THROW(reply_structure(question, ToolStyle::kHermes), HttpError);
}

Question conversation() {
  Question question = asked();
  question.messages.insert(question.messages.begin(), {.role = "system", .content = "Be brief."});
  question.messages.push_back({.role = "assistant",
                               .content = "",
                               .tool_calls = {{"call_1", "weather", R"({"city": "Rome", "days": 2})"}}});
  question.messages.push_back({.role = "tool", .content = "It rains.", .tool_call_id = "call_1"});
  return question;
}

TEST(RenderVariables, HaveCallsAndResultsAsTemplatesReadThem) {
  Question question = conversation();
  question.template_variables = {{"date_string", "today"}, {"tools", 1}};
  const Json variables =
      Json::parse(render_variables(question, ChatTemplate::built_in("chatml"), ToolStyle::kHermes));
  EXPECT_EQ(variables["date_string"], "today");
  EXPECT_EQ(variables["add_generation_prompt"], true);
  EXPECT_EQ(variables["tools"][0]["function"]["name"], "weather");
  const Json call = variables["messages"][2]["tool_calls"][0];
  EXPECT_EQ(call["id"], "call_1");
  EXPECT_EQ(call["function"]["arguments"], Json({{"city", "Rome"}, {"days", 2}}));
  EXPECT_EQ(variables["messages"][3]["tool_call_id"], "call_1");
  EXPECT_EQ(variables["messages"][3]["name"], "weather");
}

TEST(RenderVariables, TellNoToolsThatMustNotBeCalled) {
  for (const char* const format : {"chatml", "plain"}) {
    const ChatTemplate chat_template = ChatTemplate::built_in(format);
    Question question = asked();
    question.tool_choice.kind = ToolChoice::Kind::kNone;
    Question without = question;
    without.tools.clear();
    const ToolStyle style = tool_style(chat_template);
    EXPECT_EQ(render_variables(question, chat_template, style),
              render_variables(without, chat_template, style));
  }
}

TEST(RenderVariables, HaveIdsThatMistralsTemplatesAccept) {
  const Json variables =
      Json::parse(render_variables(conversation(), ChatTemplate::built_in("mistral"), ToolStyle::kMistral));
  const std::string id = variables["messages"][2]["tool_calls"][0]["id"];
  EXPECT_EQ(id.size(), 9u);
  EXPECT_EQ(variables["messages"][3]["tool_call_id"], id);
}

TEST(RenderVariables, TellToolsInWordsWhereATemplateKnowsNone) {
  const ChatTemplate simple(
      "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}");
  const Question question = conversation();
  const Json variables = Json::parse(render_variables(question, simple, tool_style(simple)));
  EXPECT_FALSE(variables.contains("tools"));
  ASSERT_EQ(variables["messages"].size(), 4u);
  EXPECT_THAT(variables["messages"][0]["content"].get<std::string>(),
              testing::AllOf(testing::StartsWith("Be brief.\n\n"), testing::HasSubstr("\"weather\"")));
  EXPECT_EQ(variables["messages"][2]["content"],
            R"({"tool_calls": [{"name": "weather", "arguments": {"city": "Rome", "days": 2}}]})");
  EXPECT_EQ(variables["messages"][3]["role"], "user");
  EXPECT_EQ(variables["messages"][3]["content"], "Result of the tool weather:\nIt rains.");
}

TEST(ConversationTokens, SayWhatATemplateRefuses) {
  const ChatTemplate refusing("{{ raise_exception('Only users may speak') }}");
  try {
    conversation_tokens(asked(), shared_model(), refusing, ToolStyle::kGeneric);
    FAIL() << "the template was rendered";
  } catch (const HttpError& error) {
    EXPECT_EQ(error.status, 400);
    EXPECT_THAT(error.what(), testing::HasSubstr("Only users may speak"));
  }
}

TEST(RenderVariables, KeepArgumentsBeyondTheLimitsOfJsonAsText) {
  const auto arguments_in = [](const std::string& text) {
    Question question = conversation();
    question.messages[2].tool_calls[0].arguments = text;
    const Json variables =
        Json::parse(render_variables(question, ChatTemplate::built_in("chatml"), ToolStyle::kHermes));
    return variables["messages"][2]["tool_calls"][0]["function"]["arguments"];
  };
  const auto nested = [](int depth) {
    return R"({"a":)" + std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']') + "}";
  };
  EXPECT_TRUE(arguments_in(nested(kDeepestJson - 1)).is_object());
  EXPECT_EQ(arguments_in(nested(kDeepestJson)), nested(kDeepestJson));
  EXPECT_EQ(arguments_in(nested(300000)), nested(300000));
  EXPECT_EQ(arguments_in("{\"a\":1,\"a\":2}"), "{\"a\":1,\"a\":2}");
  EXPECT_EQ(arguments_in("no JSON"), "no JSON");
  std::string keys = "{";
  for (int i = 0; i < 2000; ++i) keys += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":1";
  EXPECT_EQ(arguments_in(keys + "}"), keys + "}");
}

TEST(ParseInner, TakesFromOneBudget) {
  JsonBudget budget{.values = 5, .members = 2};
  EXPECT_EQ(parse_inner(R"({"a":1,"b":2})", budget), Json({{"a", 1}, {"b", 2}}));
  EXPECT_EQ(parse_inner("[]", budget), Json::array());
  EXPECT_EQ(parse_inner("[1]", budget), std::nullopt);
}

}  // namespace
}  // namespace verbatim::serve
