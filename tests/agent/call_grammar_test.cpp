#include "agent/grammar/call_grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/grammar/plan_grammar.h"
#include "agent/plan/plan_parser.h"
#include "support/byte_model.h"
#include "verbatim/engine.h"
#include "verbatim/error.h"

namespace verbatim::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ToolDeclaration tool(const std::string& schema) {
  return {.name = "t", .parameters = Json::parse(schema)};
}

/// A tool whose one argument, x, has a schema and must be given.
ToolDeclaration with_argument(const std::string& schema) {
  return tool(R"({"properties": {"x": )" + schema +
              R"(}, "required": ["x"], "$defs": {"whole": {"type": "integer"}}})");
}

/// Schemas within each other, the outer ones made of a text with an @.
std::string deep(const std::string& outer, int depth) {
  std::string schema = R"({"type": "boolean"})";
  for (int i = 0; i < depth; ++i) schema = std::string(outer).replace(outer.find('@'), 1, schema);
  return schema;
}

const char* const kList = R"({"type": "array", "items": @, "minItems": 1, "maxItems": 2})";
const char* const kObject = R"({"type": "object", "properties": {"m": @}, "required": ["m"]})";

/// Random plans held to the grammar of a tool, each of which the parser must take.
void expect_valid_plans(const ToolDeclaration& declaration) {
  SCOPED_TRACE(dump(declaration.parameters));
  const std::vector<ToolDeclaration> tools = {declaration};
  const WritableTools parted = writable(tools);
  ASSERT_THAT(parted.tools, SizeIs(1)) << parted.left_out.front();
  const Model& model = test::byte_pair().target;
  Engine engine(model, {.max_batch = 1, .threads = 1});
  int taken = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    Request request{.prompt = model.encode("p"), .options = {}, .recipe = load_recipe("plain")};
    request.options.max_tokens = 2000;
    request.options.sampling.temperature = 1;
    request.options.sampling.seed = seed;
    request.options.structure = plan_structure(tools, {}, 1, 2);
    const GenerateResult result = engine.generate(std::move(request));
    if (result.stats.finish != FinishReason::kEndOfSequence) continue;  // the model's context is small
    PlanParser parser(tools, {}, {});
    try {
      parser.add(result.text);
      parser.end();
    } catch (const PlanError& error) {
      ADD_FAILURE() << error.what() << "\n" << result.text;
    }
    taken += parser.tasks() > 0 ? 1 : 0;
  }
  EXPECT_GT(taken, 0);
}

TEST(CallGrammar, WritesOnlyWhatTheParserTakes) {
  for (
      const char* const schema :
      {R"({"type": "string", "maxLength": 5.0})",
       R"({"type": "string", "maxLength": 0})",
       R"({"type": "string", "minLength": 3.0, "maxLength": 4})",
       R"({"type": "array", "items": {"type": "boolean"}, "minItems": 2.0, "maxItems": 3.0})",
       R"({"type": "array", "items": {"type": "null"}, "minItems": 8})",
       R"({"type": "array", "maxItems": 0})",
       R"({"type": "array", "items": [{"type": "integer"}], "maxItems": 2})",
       R"({"allOf": [{"$ref": "#/$defs/whole"}], "title": "X", "default": 3})",
       R"({"items": {"type": "integer"}})",
       R"({"enum": [1, "m", "$1", null, 2.5, {"a": [1]}]})",
       R"({"type": "string", "enum": [1, "m"]})",
       R"({"const": "${2}"})",
       R"({"type": "integer", "minimum": 1, "maximum": 3, "enum": [0, 1, 9]})",
       R"({"type": ["null", "integer"]})",
       R"({"type": ["file", "integer"]})",
       R"({"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null})",
       R"({"anyOf": [false, {"type": "null"}]})",
       R"({"oneOf": ["no schema"]})",
       R"({"anyOf": []})",
       R"({"type": "number", "exclusiveMinimum": 0})",
       R"({"type": "integer", "minimum": 1, "maximum": 3})",
       R"({"$ref": "#/$defs/nowhere"})",
       R"({"$ref": "https://example.org/x"})",
       "true",
       R"({"properties": {"a b": {"type": "boolean"}}, "required": ["a b", "a b"], "additionalProperties": false})"}) {
    expect_valid_plans(with_argument(schema));
  }
  expect_valid_plans(with_argument(deep(kList, 4)));
  expect_valid_plans(with_argument(deep(kObject, 4)));
  expect_valid_plans(
      tool(R"({"properties": {"a b": {"type": "null"}, "c": {"type": "null"}}, "required": ["a b"]})"));
  expect_valid_plans(tool("true"));
  expect_valid_plans({.name = "t"});
}

TEST(CallGrammar, LeavesOutAToolItCannotHoldToItsSchema) {
  std::vector<ToolDeclaration> bad;
  for (const char* const schema :
       {R"({"allOf": [{"type": "integer"}, {"minimum": 3}]})",
        R"({"allOf": [{"type": "integer"}], "minimum": 3})", R"({"type": "string", "minLength": 101})",
        R"({"type": "string", "minLength": 5, "maxLength": 4})", R"({"type": "array", "minItems": 9})",
        R"({"type": "array", "items": false})",
        R"({"type": "object", "properties": {}, "required": ["a"], "additionalProperties": false})",
        R"({"type": "string", "enum": [1]})", R"({"enum": []})", R"({"anyOf": [false]})",
        R"({"type": "file"})", R"({"type": []})", R"({"type": "object", "anyOf": [{"required": ["a"]}]})",
        R"({"type": "integer", "minimum": 3, "maximum": 1})", "false"}) {
    bad.push_back(with_argument(schema));
  }
  bad.push_back(with_argument(deep(kList, 5)));
  bad.push_back(with_argument(deep(kObject, 5)));
  bad.push_back(tool(R"({"properties": {}, "required": ["x"]})"));
  bad.push_back(tool(R"({"properties": {"a": {}, "a b": {}}, "required": ["a b"]})"));
  bad.push_back(
      tool(R"({"properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]})"));
  bad.push_back(tool(R"({"properties": {"a": {}}, "allOf": [{"required": ["a"]}]})"));
  bad.push_back(tool(R"({"type": "string"})"));
  bad.push_back(tool("false"));
  for (const ToolDeclaration& one : bad) {
    SCOPED_TRACE(dump(one.parameters));
    const WritableTools parted = writable({one, {.name = "good"}});
    ASSERT_THAT(parted.tools, SizeIs(1));
    EXPECT_EQ(parted.tools[0].name, "good");
    ASSERT_THAT(parted.left_out, SizeIs(1));
    EXPECT_THAT(parted.left_out[0],
                HasSubstr("the tool `t` is left out, as no grammar can hold to its schema: "));
    EXPECT_THROW(call_structure(one, {}), Error);
  }
}

TEST(CallGrammar, LeavesOutAnArgumentThatNeedNotBeGiven) {
  const ToolDeclaration one = tool(
      R"({"properties": {"x": {"type": "null"}, "y": {"type": "string", "minLength": 200}, "a b": {}, "z": {"type": "null"}}, "required": ["x"]})");
  const WritableTools parted = writable({one});
  ASSERT_THAT(parted.left_out, SizeIs(2));
  EXPECT_EQ(parted.left_out[0], "the argument `y` of `t` is never given: `minLength` is more than 100");
  EXPECT_EQ(parted.left_out[1], "the argument `a b` of `t` is never given: it is no name of an argument");
  expect_valid_plans(one);
}

TEST(CallGrammar, OfASchemaThatRefersToItselfIsSmall) {
  for (const char* const key : {"allOf", "anyOf"}) {
    Json schema = {{"type", "object"}, {"properties", Json::object()}, {"required", Json::array()}};
    Json inner = schema;
    for (int i = 0; i < 20; ++i) {
      const std::string name = fmt::format("p{}", i);
      inner["properties"][name] = {{key, {{{"$ref", "#/$defs/inner"}}, {{"$ref", "#/$defs/inner"}}}}};
      inner["required"].push_back(name);
    }
    schema["properties"]["x"] = inner;
    schema["required"].push_back("x");
    schema["$defs"]["inner"] = inner;
    EXPECT_THAT(writable({{.name = "t", .parameters = schema}}).tools, IsEmpty());
  }
  Json wide = {{"properties", Json::object()}, {"required", Json::array()}};
  for (int i = 0; i < 999; ++i) {
    wide["properties"][fmt::format("p{}", i)] = {{"type", "null"}};
    wide["required"].push_back(fmt::format("p{}", i));
  }
  std::vector<ToolDeclaration> many;
  for (int i = 0; i < 10; ++i) many.push_back({.name = fmt::format("t{}", i), .parameters = wide});
  const WritableTools parted = writable(many);
  EXPECT_THAT(parted.tools, SizeIs(5));
  EXPECT_THAT(parted.left_out, SizeIs(5));
}

}  // namespace
}  // namespace verbatim::agent
