#include <set>

#include <gtest/gtest.h>

#include "serve/conversation.h"

namespace verbatim::serve {
namespace {

using Kind = ReplyEvent::Kind;

Question question_with(std::vector<std::string> names, ToolChoice choice = {}) {
  Question question;
  for (std::string& name : names) {
    question.tools.push_back({.name = std::move(name), .description = "", .parameters = Json::object()});
  }
  question.tool_choice = std::move(choice);
  return question;
}

Question weather() {
  return question_with({"look", "say \"hi\"", "f"});
}

/// Events with neighbours of one kind made one, and ids, which are random, left out.
std::vector<ReplyEvent> merged(const std::vector<ReplyEvent>& events) {
  std::vector<ReplyEvent> result;
  for (const ReplyEvent& event : events) {
    const bool text = event.kind == Kind::kText || event.kind == Kind::kToolArguments;
    if (text && !result.empty() && result.back().kind == event.kind) {
      result.back().text += event.text;
    } else {
      result.push_back(event);
      result.back().id.clear();
    }
  }
  return result;
}

std::vector<ReplyEvent> parsed(const Question& question, ToolStyle style,
                               const std::vector<std::string_view>& pieces) {
  ReplyParser parser(question, style);
  std::vector<ReplyEvent> events;
  for (const std::string_view piece : pieces) {
    for (ReplyEvent& event : parser.push(piece)) events.push_back(std::move(event));
  }
  for (ReplyEvent& event : parser.finish()) events.push_back(std::move(event));
  return merged(events);
}

std::string shown(const std::vector<ReplyEvent>& events) {
  std::string text;
  for (const ReplyEvent& event : events) {
    switch (event.kind) {
      case Kind::kText:
        text += "T(" + event.text + ")";
        break;
      case Kind::kToolBegin:
        text += "<" + event.name + ":";
        break;
      case Kind::kToolArguments:
        text += event.text;
        break;
      case Kind::kToolEnd:
        text += ">";
        break;
    }
  }
  return text;
}

/// What a reply is read as. Checks that it is the same however it is cut into two pieces, into three and into
/// single bytes.
std::string read(const Question& question, ToolStyle style, std::string_view reply) {
  const std::vector<ReplyEvent> whole = parsed(question, style, {reply});
  std::vector<std::string_view> bytes;
  for (size_t i = 0; i < reply.size(); ++i) bytes.push_back(reply.substr(i, 1));
  EXPECT_EQ(parsed(question, style, bytes), whole) << reply;
  const size_t step = reply.size() > 80 ? 3 : 1;  // of long replies every third place of a second cut
  for (size_t i = 0; i <= reply.size(); ++i) {
    for (size_t j = i; j <= reply.size(); j += step) {
      const auto events =
          parsed(question, style, {reply.substr(0, i), reply.substr(i, j - i), reply.substr(j)});
      if (events != whole) {
        ADD_FAILURE() << "cut at " << i << " and " << j << ": " << shown(events) << " for " << shown(whole);
        return {};
      }
    }
  }
  return shown(whole);
}

struct ReplyCase {
  ToolStyle style;
  std::string reply;
  std::string events;
};

class ReplyParserStyles : public testing::TestWithParam<ReplyCase> {};

TEST_P(ReplyParserStyles, ReadsTheSameInWhateverPiecesTheReplyComes) {
  EXPECT_EQ(read(weather(), GetParam().style, GetParam().reply), GetParam().events);
}

const std::string kArguments = R"({"ö": "\u00f6\"}]\\", "b": [1,{}] })";
const std::string kCall = R"({"name": "look", "arguments": )" + kArguments + "}";
const std::string kRead = "<look:" + kArguments + ">";

INSTANTIATE_TEST_SUITE_P(
    Hermes, ReplyParserStyles,
    testing::Values(
        ReplyCase{ToolStyle::kHermes, "Just <words> and <tool_cal> and < no call",
                  "T(Just <words> and <tool_cal> and < no call)"},
        ReplyCase{ToolStyle::kHermes, "<tool_call>\n" + kCall + "\n</tool_call>", kRead},
        ReplyCase{ToolStyle::kHermes, "Süß, \n\n<tool_call>\n" + kCall + "\n</tool_call>\n",
                  "T(Süß,)" + kRead},
        ReplyCase{ToolStyle::kHermes, "<<tool_call>" + kCall + "</tool_call> done ",
                  "T(<)" + kRead + "T( done )"},
        ReplyCase{ToolStyle::kHermes,
                  "<tool_call>\n" + kCall +
                      "\n</tool_call>\n<tool_call>\n{\"name\":\"f\",\"arguments\":{}}\n</tool_call>",
                  kRead + "<f:{}>"},
        ReplyCase{ToolStyle::kHermes,
                  "<tool_call>{\"arguments\": {\"x\": 1}, \"id\": 3, \"name\": \"f\"}</tool_call>",
                  "<f:{\"x\": 1}>"},
        ReplyCase{ToolStyle::kHermes, R"(<tool_call>{"name": "say \"hi\"", "arguments": {}}</tool_call>)",
                  "<say \"hi\":{}>"},
        ReplyCase{ToolStyle::kHermes, "{\"name\": \"f\", \"arguments\": {}}",
                  "T({\"name\": \"f\", \"arguments\": {}})"},
        // Calls that are none.
        ReplyCase{ToolStyle::kHermes, "a <tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>",
                  "T(a <tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>)"},
        ReplyCase{ToolStyle::kHermes, "<tool_call>f(1)</tool_call>", "T(<tool_call>f(1)</tool_call>)"},
        ReplyCase{ToolStyle::kHermes, "<tool_call><tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>",
                  "T(<tool_call>)<f:{}>"},
        ReplyCase{ToolStyle::kHermes, "<tool_call>{\"name\": \"f\"}</tool_call>",
                  "T(<tool_call>{\"name\": \"f\"}</tool_call>)"},
        ReplyCase{ToolStyle::kHermes, "<tool_call>{\"name\": 1, \"arguments\": {}}",
                  "T(<tool_call>{\"name\": 1, \"arguments\": {}})"},
        ReplyCase{ToolStyle::kHermes, "<tool_call>{\"name\": \"f\", \"arguments\": \"x\"}",
                  "T(<tool_call>{\"name\": \"f\", \"arguments\": \"x\"})"},
        ReplyCase{ToolStyle::kHermes, "<tool_call>{\"name\": \"f\", \"name\": \"f\", \"arguments\": {}}",
                  "T(<tool_call>{\"name\": \"f\", \"name\": \"f\", \"arguments\": {}})"},
        // Cut off, or wrong after the arguments had begun.
        ReplyCase{ToolStyle::kHermes, "so <tool_ca", "T(so <tool_ca)"},
        ReplyCase{ToolStyle::kHermes, "<tool_call>{\"name\": \"f\", \"arg",
                  "T(<tool_call>{\"name\": \"f\", \"arg)"},
        ReplyCase{ToolStyle::kHermes, "<tool_call>{\"arguments\": {}, \"name\": \"f\"",
                  "T(<tool_call>{\"arguments\": {}, \"name\": \"f\")"},
        ReplyCase{ToolStyle::kHermes, "<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": \"y",
                  "<f:{\"x\": \"y"},
        ReplyCase{ToolStyle::kHermes, "<tool_call>{\"name\": \"f\", \"arguments\": {}", "<f:{}>"},
        ReplyCase{ToolStyle::kHermes, "<tool_call>{\"name\": \"f\", \"arguments\": {}}\n</tool", "<f:{}>"},
        ReplyCase{ToolStyle::kHermes, "<tool_call>{\"name\": \"f\", \"arguments\": {]}", "<f:{T(]})"},
        ReplyCase{ToolStyle::kHermes, "<tool_call>{\"name\": \"f\", \"arguments\": {}}\nand so",
                  "<f:{}>T(\nand so)"}));

INSTANTIATE_TEST_SUITE_P(
    Llama3, ReplyParserStyles,
    testing::Values(
        ReplyCase{ToolStyle::kLlama3, "{\"name\": \"f\", \"parameters\": {\"a\": \"b\"}}",
                  "<f:{\"a\": \"b\"}>"},
        ReplyCase{ToolStyle::kLlama3, "\n <|python_tag|>{\"name\": \"f\", \"parameters\": {}}\n", "<f:{}>"},
        ReplyCase{ToolStyle::kLlama3, kCall + "; {\"name\": \"f\", \"parameters\": {}}", kRead + "<f:{}>"},
        ReplyCase{ToolStyle::kLlama3, kCall + "\n" + kCall, kRead + kRead},
        ReplyCase{ToolStyle::kLlama3, kCall + " It rains.", kRead + "T( It rains.)"},
        ReplyCase{ToolStyle::kLlama3, "{\"name\": \"Ada\", \"age\": 36}",
                  "T({\"name\": \"Ada\", \"age\": 36})"},
        ReplyCase{ToolStyle::kLlama3, "<|python_tag|>print(1)", "T(<|python_tag|>print(1))"},
        ReplyCase{ToolStyle::kLlama3, "<b> {}", "T(<b> {})"},
        ReplyCase{ToolStyle::kLlama3, " So: " + kCall, "T( So: " + kCall + ")"},
        ReplyCase{ToolStyle::kLlama3, kCall + ";", kRead},
        ReplyCase{ToolStyle::kLlama3, "{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"x\"",
                  "<f:{}>T(; {\"name\": \"x\")"}));

INSTANTIATE_TEST_SUITE_P(
    Mistral, ReplyParserStyles,
    testing::Values(
        ReplyCase{ToolStyle::kMistral, "[TOOL_CALLS][" + kCall + "]", kRead},
        ReplyCase{ToolStyle::kMistral, "[TOOL_CALLS] [" + kCall + ", " + kCall + "] ", kRead + kRead},
        ReplyCase{ToolStyle::kMistral, "Well.\n[TOOL_CALLS]" + kCall + "\nDone",
                  "T(Well.)" + kRead + "T(\nDone)"},
        ReplyCase{ToolStyle::kMistral,
                  "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}, \"id\": \"VvvODy9mT\"}]", "<f:{}>"},
        ReplyCase{ToolStyle::kMistral, "[TOOL][TOOL_CALLS][]", "T([TOOL][TOOL_CALLS][])"},
        ReplyCase{ToolStyle::kMistral, "[TOOL_CALLS][" + kCall, kRead},
        ReplyCase{ToolStyle::kMistral, "[TOOL_CALLS][" + kCall + ", ", kRead},
        ReplyCase{ToolStyle::kMistral, "[TOOL_CALLS][" + kCall + ", f]", kRead + "T(, f])"}));

INSTANTIATE_TEST_SUITE_P(
    Generic, ReplyParserStyles,
    testing::Values(ReplyCase{ToolStyle::kGeneric, "{\"tool_calls\": [" + kCall + "]}", kRead},
                    ReplyCase{ToolStyle::kGeneric,
                              " { \"tool_calls\" :[ " + kCall + " ,{\"name\":\"f\",\"arguments\":{}}]\n}\n",
                              kRead + "<f:{}>"},
                    ReplyCase{ToolStyle::kGeneric, "{\"tool_calls\": [" + kCall + "]", kRead},
                    ReplyCase{ToolStyle::kGeneric, "{\"tool_calls\": [" + kCall + "]} ok", kRead + "T( ok)"},
                    ReplyCase{ToolStyle::kGeneric, "{\"tool_calls\": []}", "T({\"tool_calls\": []})"},
                    ReplyCase{ToolStyle::kGeneric, "{\"tool\": 1}", "T({\"tool\": 1})"},
                    ReplyCase{ToolStyle::kGeneric, "No {\"tool_calls\": [" + kCall + "]}",
                              "T(No {\"tool_calls\": [" + kCall + "]})"},
                    ReplyCase{ToolStyle::kGeneric, "", ""}));

TEST(ReplyParser, TellsANameAsSoonAsItsArgumentsBeginAndThemAsTheyCome) {
  ReplyParser parser(weather(), ToolStyle::kHermes);
  EXPECT_TRUE(parser.push("<tool_call>{\"name\": \"f\", \"arguments\": ").empty());
  const auto begun = parser.push("{\"a");
  ASSERT_EQ(begun.size(), 2U);
  EXPECT_EQ(begun[0].kind, Kind::kToolBegin);
  EXPECT_EQ(begun[0].name, "f");
  EXPECT_EQ(begun[1].text, "{\"a");
  EXPECT_EQ(parser.push("\": 1").at(0).text, "\": 1");
}

TEST(ReplyParser, ReleasesWhatBeginsNoCallWithTheByteThatShowsIt) {
  ReplyParser parser(weather(), ToolStyle::kHermes);
  EXPECT_TRUE(parser.push("<tool").empty());
  EXPECT_EQ(shown(parser.push("b")), "T(<toolb)");
}

TEST(ReplyParser, GivesEveryCallAnIdOfItsOwnInTheFormOfTheStyle) {
  std::set<std::string> ids;
  for (const ToolStyle style : {ToolStyle::kMistral, ToolStyle::kGeneric}) {
    for (int i = 0; i < 200; ++i) {
      ReplyParser parser(weather(), style);
      const std::string begin = style == ToolStyle::kMistral ? "[TOOL_CALLS][" : "{\"tool_calls\": [";
      for (const ReplyEvent& event : parser.push(begin + kCall + ", " + kCall)) {
        if (event.kind != Kind::kToolBegin) continue;
        EXPECT_TRUE(ids.insert(event.id).second);
        EXPECT_EQ(event.id.size(), style == ToolStyle::kMistral ? 9U : 29U);
      }
    }
  }
  EXPECT_EQ(ids.size(), 800U);
}

TEST(ReplyParser, LeavesCallsWhereTheQuestionAllowsNoneAsWords) {
  const std::string reply = "<tool_call>" + kCall + "</tool_call> ";
  EXPECT_EQ(read(Question{}, ToolStyle::kHermes, reply), "T(" + reply + ")");
  const Question none = question_with({"look"}, {.kind = ToolChoice::Kind::kNone});
  EXPECT_EQ(read(none, ToolStyle::kHermes, reply), "T(" + reply + ")");
  const Question named = question_with({"look", "f"}, {.kind = ToolChoice::Kind::kNamed, .name = "f"});
  EXPECT_EQ(read(named, ToolStyle::kHermes, reply), "T(" + reply + ")");
}

TEST(ReplyParser, TakesArgumentsThatLieTooDeepForWords) {
  const std::string deep = "{\"a\": " + std::string(100, '[');
  const std::vector<ReplyEvent> events =
      parsed(weather(), ToolStyle::kMistral, {"[TOOL_CALLS][{\"name\": \"f\", \"arguments\": " + deep});
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[1].text + events[2].text, deep);
  EXPECT_EQ(events[2].kind, Kind::kText);
}

}  // namespace
}  // namespace verbatim::serve
