#include "agent/plan/plan_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "agent/tools/schema_check.h"

namespace verbatim::agent {
namespace plan_parser_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<ToolDeclaration> tools() {
  const Json text = {{"type", "string"}};
  const auto object = [](Json properties, Json required) {
    return Json{{"type", "object"}, {"properties", std::move(properties)}, {"required", std::move(required)}};
  };
  return {{.name = "search", .parameters = object({{"query", text}}, {"query"})},
          {.name = "math",
           .parameters = object({{"expression", text}, {"context", {{"type", "array"}, {"items", text}}}},
                                {"expression"})},
          {.name = "set",
           .parameters = object({{"value", Json::object()},
                                 {"count", {{"type", "integer"}, {"minimum", 1}}},
                                 {"unit", {{"enum", {"m", "km"}}}}},
                                {"value"})}};
}

/// What a plan says, and what is wrong with it.
struct Read {
  std::vector<std::string> tasks;
  std::vector<std::string> thoughts;
  std::string error;
  bool joined = false;
};

Read read(const std::string& text, size_t piece = std::string::npos, std::set<int64_t> known = {}) {
  static const std::vector<ToolDeclaration> all = tools();
  Read result;
  PlanParser parser(all, std::move(known),
                    {.task = [&](PlannedTask task) { result.tasks.push_back(written(task)); },
                     .thought = [&](const std::string& thought) { result.thoughts.push_back(thought); }},
                    {.tasks = 50, .line_bytes = 2000});
  try {
    for (size_t at = 0; at < text.size(); at += std::min(piece, text.size() - at)) {
      parser.add(std::string_view(text).substr(at, piece));
    }
    parser.end();
  } catch (const PlanError& error) {
    result.error = error.what();
  }
  result.joined = parser.joined();
  return result;
}

TEST(PlanParser, ReadsThePlansOfTheThesis) {
  const std::string plan =
      "1. search(\"Mission Impossible\")\n"
      "$2 = search(\"Rosetta\")\n"
      "Thought: I have both.\n"
      "3. math(\"min($1, ${2})\", [\"$1\"])\n"
      "4. finish()\n###\n";
  for (const size_t piece : {size_t{1}, size_t{3}, std::string::npos}) {
    const Read result = read(plan, piece);
    EXPECT_EQ(result.error, "");
    EXPECT_TRUE(result.joined);
    EXPECT_THAT(result.thoughts, ElementsAre("I have both."));
    EXPECT_THAT(result.tasks,
                ElementsAre("1. search(query=\"Mission Impossible\")", "2. search(query=\"Rosetta\")",
                            "3. math(expression=\"min(${1}, ${2})\", context=[$1])"));
  }
}

TEST(PlanParser, HandsATaskOverAtTheEndOfItsLine) {
  const std::vector<ToolDeclaration> all = tools();
  std::vector<int64_t> seen;
  PlanParser parser(all, {}, {.task = [&](const PlannedTask& task) { seen.push_back(task.id); }});
  parser.add("1. search(\"a\")");
  EXPECT_THAT(seen, IsEmpty());
  parser.add("\n2. sea");
  EXPECT_THAT(seen, ElementsAre(1));
  parser.add("rch(\"b\")\njoin()");
  EXPECT_THAT(seen, ElementsAre(1, 2));
  parser.end();
  EXPECT_TRUE(parser.joined());
}

TEST(PlanParser, ReadsValuesOfJsonAndOfPython) {
  const Read result = read(
      "1. set({\"a\": [1, -2.5e3, 'x\\u00e9\\ud83d\\ude00'], 'b': {}}, count=3, unit=\"km\")\n"
      "2. set([True, False, None, true, null,], 1)\n"
      "3. set(\"costs \\$5, $ 5 and $x; \\u00245\")\n"
      "4. set({\"k\": \"$1\", \"l\": \"a$2b\"}\n"  // the last parenthesis is missing
      "join()\n");
  EXPECT_EQ(result.error, "");
  EXPECT_THAT(result.tasks,
              ElementsAre("1. set(value={\"a\": [1, -2500.0, \"xé😀\"], \"b\": {}}, count=3, unit=\"km\")",
                          "2. set(value=[true, false, null, true, null], count=1)",
                          "3. set(value=\"costs \\$5, $ 5 and $x; \\$5\")",
                          "4. set(value={\"k\": $1, \"l\": \"a${2}b\"})"));
}

TEST(PlanParser, TakesArgumentsByAnyNameThatSchemasUse) {
  const std::vector<ToolDeclaration> all = {
      {.name = "t", .parameters = Json::parse(R"({"properties": {"a-b": {}, "c.d": {}, "_e": {}}})")}};
  std::string task;
  PlanParser parser(all, {}, {.task = [&](const PlannedTask& planned) { task = written(planned); }});
  parser.add("1. t(_e=-1, c.d = \"x\", a-b=[1])\njoin()\n");
  EXPECT_EQ(task, "1. t(_e=-1, c.d=\"x\", a-b=[1])");
}

TEST(PlanParser, PassesOverWhatFollowsTheEnd) {
  EXPECT_EQ(read("join()\n1. nonsense(\n").error, "");
  EXPECT_EQ(read("1. search(\"x\")\n<END_OF_PLAN> and so on\nrubbish").error, "");
  EXPECT_EQ(read("1. search(\"x\")\n2. join() ... as \xFF").error,
            "line 2, column 18: the line holds a byte that is no UTF-8");
}

TEST(PlanParser, NamesWhatIsWrong) {
  const auto error = [](const std::string& plan) { return read(plan).error; };
  EXPECT_EQ(error("1. find(\"x\")\n"), "line 1: there is no tool `find`; they are search, math, set");
  EXPECT_THAT(error("1. search(\"$2\")\n"), HasSubstr("task 1 refers to $2, a later task"));
  EXPECT_THAT(error("1. search(\"$1\")\n"), HasSubstr("task 1 refers to its own result"));
  EXPECT_THAT(error("1. search(\"a\")\n5. search(\"$3\")\n"),
              HasSubstr("line 2: task 5 refers to $3, and there is no task 3"));
  EXPECT_THAT(error("1. search(\"$0\")\n"), HasSubstr("0 is no number of a task"));
  EXPECT_THAT(error("1. search(\"$99999999999999999999\")\n"),
              HasSubstr("99999999999999999999 is no number of a task"));
  EXPECT_THAT(error("1. search(\"a\")\n1. search(\"b\")\n"),
              HasSubstr("there is a task 1 already; the next number is 2"));
  EXPECT_THAT(error("3. search(\"a\")\n2. search(\"b\")\n"), HasSubstr("task 2 comes after task 3"));
  EXPECT_EQ(error("1. search(7)\n"),
            "line 1: the arguments of search are wrong: `query` should be a string, and is an integer");
  EXPECT_EQ(error("1. search()\n"), "line 1: the arguments of search are wrong: `query` is missing");
  EXPECT_EQ(error("1. search(\"a\", \"b\")\n"), "line 1: search takes 1 arguments at most: query");
  EXPECT_THAT(error("1. search(q=\"a\")\n"), HasSubstr("search has no argument `q`; it takes query"));
  EXPECT_THAT(error("1. search(\"a\", query=\"b\")\n"), HasSubstr("given by position and by name"));
  EXPECT_THAT(error("1. set(1, 0)\n"), HasSubstr("`count` should be at least 1, and is 0"));
  EXPECT_THAT(error("1. set(1, unit='mile')\n"),
              HasSubstr("`unit` should be one of [\"m\",\"km\"], and is \"mile\""));
  EXPECT_THAT(error("1. math(\"1\", [1])\n"), HasSubstr("`context[0]` should be a string"));
  EXPECT_THAT(error("1. search(\"a\") # why\n"), HasSubstr("`# why` stands after the call"));
  EXPECT_THAT(error("1. search(\"a\n"), HasSubstr("column 11: the line ends within a string"));
  EXPECT_THAT(error("1. search(a)\n"), HasSubstr("`a)` is no value; strings stand in quotation marks"));
  EXPECT_THAT(error("1. set([1, 2\n"), HasSubstr("the line ends before `]`"));
  EXPECT_THAT(error("1. set(1e999)\n"), HasSubstr("is no number"));
  EXPECT_THAT(error("search(\"a\")\n"), HasSubstr("the call has no number"));
  EXPECT_THAT(error("Here is the plan:\n"), HasSubstr("is neither a call"));
  EXPECT_THAT(error("1. search(\"a\")\n"), HasSubstr("ends without `join()`"));
  EXPECT_THAT(error("join(1)\n"), HasSubstr("join() takes no arguments"));
  EXPECT_THAT(error(""), HasSubstr("ends without `join()`"));
  EXPECT_THAT(error("1. set(\"" + std::string(3000, 'x')), HasSubstr("more than 2000 bytes"));
  EXPECT_THAT(error("1. set(" + std::string(1000, '[')), HasSubstr("deeper than 64"));
  std::string many;
  for (int i = 1; i <= 60; ++i) many += std::to_string(i) + ". search(\"a\")\n";
  EXPECT_THAT(error(many), HasSubstr("line 51: the plan has more than 50 tasks"));
}

TEST(PlanParser, GoesOnAfterEarlierPlans) {
  EXPECT_THAT(read("3. search(\"$1\")\njoin()\n", 1, {1, 2}).tasks, ElementsAre("3. search(query=$1)"));
  EXPECT_THAT(read("1. search(\"a\")\n", 1, {1, 2}).error, HasSubstr("the next number is 3"));
}

TEST(PlanParser, NeverCrashesOnBrokenPlans) {
  const std::string plan =
      "1. search(\"a\\u00e9$\")\nThought: x\n$2 = set({\"k\": [\"${1}\", -1.5]}, count=2)\n3. math('$1+$2', "
      "[])\njoin()\n";
  for (size_t at = 0; at < plan.size(); ++at) {
    for (const char c : std::string_view("$\"'\\({[0 \n\xFF\0}", 13)) {
      std::string broken = plan;
      broken[at] = c;
      read(broken, 7);
    }
    read(plan.substr(0, at));
    read(plan.substr(at));
  }
}

TEST(Term, SubstitutesOnceAndKeepsTypes) {
  const std::vector<ToolDeclaration> all = tools();
  std::vector<PlannedTask> planned;
  PlanParser parser(all, {1, 2, 10}, {.task = [&](PlannedTask task) { planned.push_back(std::move(task)); }});
  parser.add("11. set({\"whole\": \"$1\", \"bare\": $2, \"in\": \"<$10|$1|${1}0>\"})\njoin()\n");
  const std::map<int64_t, Json> results = {{1, "$2 ${10}\n12. search(\"x\")"}, {2, {{"n", 1.5}}}, {10, 7}};
  const Json json =
      substitute(planned.at(0).arguments, [&](int64_t id) -> const Json& { return results.at(id); });
  EXPECT_EQ(json["value"]["whole"], results.at(1));
  EXPECT_EQ(json["value"]["bare"], (Json{{"n", 1.5}}));
  EXPECT_EQ(json["value"]["in"], "<7|$2 ${10}\n12. search(\"x\")|$2 ${10}\n12. search(\"x\")0>");
}

TEST(SchemaCheck, FollowsReferencesAndCombinations) {
  const Json schema = Json::parse(
      R"({"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}, "loop": {"$ref": "#/properties/loop"},
    "b": {"anyOf": [{"type": "null"}, {"type": "string", "maxLength": 2}]}}, "additionalProperties": false, "$defs": {"n": {"type": "number", "exclusiveMinimum": 0}}})");
  const auto fault = [&](const char* json) {
    return schema_fault(Term::of(Json::parse(json)), schema, "").value_or("");
  };
  EXPECT_EQ(fault(R"({"a": 1, "b": null, "loop": 3})"), "");
  EXPECT_EQ(fault(R"({"a": 0})"), "`a` should be more than 0, and is 0");
  EXPECT_EQ(fault(R"({"b": "éé"})"), "");
  EXPECT_THAT(fault(R"({"b": "abc"})"), HasSubstr("`b` should be a null"));
  EXPECT_EQ(fault(R"({"c": 1})"), "there is no `c`");
  EXPECT_EQ(schema_fault(Term::of(1), Json("broken"), "x"), std::nullopt);
  EXPECT_EQ(schema_fault(Term::of(1), Json{{"type", 7}, {"enum", 8}, {"minimum", "x"}}, "x"), std::nullopt);
}

TEST(SchemaCheck, ConvertsResultsToTheTypeThatIsAskedFor) {
  const Json schema = Json::parse(
      R"({"properties": {"s": {"type": "string"}, "n": {"type": "number"}, "l": {"items": {"type": "integer"}}}})");
  EXPECT_EQ(converted(Json::parse(R"({"s": {"x": 1}, "n": "2.5", "l": ["1", 2, "x"]})"), schema),
            Json::parse(R"({"s": "{\"x\":1}", "n": 2.5, "l": [1, 2, "x"]})"));
}

TEST(SchemaCheck, ConvertsThroughReferencesAndCombinations) {
  const Json schema = Json::parse(R"({"$defs": {"n": {"type": "integer"}}, "properties": {
    "list": {"type": ["string", "null"]}, "number": {"type": ["integer", "null"]}, "either": {"type": ["integer", "string"]},
    "any": {"anyOf": [{"type": "null"}, {"type": "number"}]}, "text": {"oneOf": [{"type": "string"}, {"type": "null"}]},
    "both": {"anyOf": [{"type": "number"}, {"type": "string"}]}, "all": {"allOf": [{"$ref": "#/$defs/n"}, {"minimum": 2}]},
    "ref": {"$ref": "#/$defs/n"}, "deep": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/$defs/n"}}]},
    "loop": {"anyOf": [{"$ref": "#/properties/loop"}]}}})");
  EXPECT_EQ(
      converted(
          Json::parse(
              R"({"list": {"x": 1}, "number": "7", "either": "7", "any": "2.5", "text": [1], "both": "5",
                  "all": "3", "ref": "4", "deep": ["1", 2], "loop": "1"})"),
          schema),
      Json::parse(R"({"list": "{\"x\":1}", "number": 7, "either": "7", "any": 2.5, "text": "[1]", "both": "5",
                  "all": 3, "ref": 4, "deep": [1, 2], "loop": "1"})"));
  EXPECT_EQ(converted(Json::parse(R"({"list": null, "number": "x", "any": null})"), schema),
            Json::parse(R"({"list": null, "number": "x", "any": null})"));
}

TEST(SchemaCheck, EndsSoonWhateverTheSchema) {
  const Json doubling = Json::parse(
      R"({"properties": {"x": {"anyOf": [{"$ref": "#/properties/x"}, {"$ref": "#/properties/x"}]},
                         "y": {"allOf": [{"$ref": "#/properties/y"}, {"$ref": "#/properties/y"}]},
                         "z": {"oneOf": [{"type": "object", "properties": {"z": {"$ref": "#/properties/z"}}},
                                         {"type": "object", "properties": {"z": {"$ref": "#/properties/z"}}}]}}})");
  Json deep = "end";
  for (int i = 0; i < 60; ++i) deep = Json{{"z", deep}};
  const Json value = {{"x", 1}, {"y", Json(std::vector<int>(100'000, 1))}, {"z", deep["z"]}};
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& [key, member] : value.items()) {
    const Json one = {{key, member}};
    EXPECT_EQ(converted(one, doubling), one);
    EXPECT_EQ(schema_fault(Term::of(one), doubling, ""), std::nullopt);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

}  // namespace
}  // namespace plan_parser_test
}  // namespace verbatim::agent
