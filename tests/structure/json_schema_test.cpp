#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/structures.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

using testing::HasSubstr;

/// A schema with texts that fit it and texts that do not.
struct Case {
  const char* schema;
  std::vector<std::string> good;
  std::vector<std::string> bad;
};

void check(const Case& each) {
  SCOPED_TRACE(each.schema);
  test::Reader reader(Structure::json_schema(each.schema));
  for (const std::string& text : each.good) EXPECT_TRUE(reader.fits(text)) << text;
  for (const std::string& text : each.bad) EXPECT_FALSE(reader.fits(text)) << text;
}

/// The message that a schema is refused with.
std::string refusal(const std::string& schema) {
  try {
    Structure::json_schema(schema);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadInput);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "nothing was refused";
}

TEST(JsonSchema, WritesPropertiesInTheirOrderAndLeavesOptionalOnesOut) {
  check({R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"}},
            "required":["b"],"additionalProperties":false})",
         {R"({"b": null})", R"({"a": null, "b": null})", R"({"b": null, "c": null})",
          R"({"a": null, "b": null, "c": null})"},
         {"{}", R"({"a": null})", R"({"b": null, "a": null})", R"({"b": null,"c": null})", R"({"b":null})",
          R"({ "b": null})", R"({"b": null, })", R"({, "b": null})", R"({"b": null, "d": null})",
          R"({"b": null, "b": null})"}});
  check(
      {R"({"type":"object","properties":{"a":{"type":"null"}}})", {"{}", R"({"a": null})"}, {R"({"b": 1})"}});
}

TEST(JsonSchema, AllowsOtherPropertiesWhereItSaysSoButNoneTwice) {
  check(
      {R"({"type":"object","properties":{"ab":{"type":"null"},"a":{"type":"null"}},"required":["ab"],
            "additionalProperties":{"type":"boolean"}})",
       {R"({"ab": null})", R"({"ab": null, "x": true})", R"({"ab": null, "a": null, "abc": true, "": false})",
        R"({"ab": null, "b": true})", R"({"ab": null, "日": true})", R"({"ab": null, "a\n": true})"},
       {R"({"ab": null, "ab": true})", R"({"ab": null, "a": true})", R"({"x": true, "ab": null})",
        R"({"ab": null, "x": null})", R"({"ab": null, "\u0061b": true})"}});
  check({R"({"type":"object","additionalProperties":false})", {"{}"}, {R"({"a": 1})"}});
  check({R"({"type":"object"})", {"{}", R"({"a": [1, {"b": null}]})"}, {"[]", R"({"a" : 1})"}});
  check({R"({"type":"object","required":["a"]})",
         {R"({"a": 1})", R"({"a": 1, "b": 2})"},
         {"{}", R"({"b": 2})"}});
}

TEST(JsonSchema, WritesListedValuesAsJsonDumpsDoes) {
  check({R"({"enum":["a","a b",1,2.5,null,true,[1,2],{"k":"v","l":[]},"quo\"te\n","日本"]})",
         {R"("a")", R"("a b")", "1", "2.5", "null", "true", "[1, 2]", R"({"k": "v", "l": []})",
          R"("quo\"te\n")", R"("日本")"},
         {R"("b")", "[1,2]", "2", "false", R"("a )"}});
  check({R"({"const":{"a":1}})", {R"({"a": 1})"}, {"{}", "1"}});
  check({R"({"type":"string","enum":["a",1,null]})", {R"("a")"}, {"1", "null"}});
  check({R"({"type":"integer","enum":["a",1,2.0,2.5]})", {"1", "2.0"}, {"2.5", R"("a")"}});
}

TEST(JsonSchema, KnowsEveryType) {
  check({R"({"type":"boolean"})", {"true", "false"}, {"True", "null", "tru"}});
  check({R"({"type":["string","null"]})", {"null", R"("")"}, {"1"}});
  check({R"({"type":"string","nullable":true})", {"null", R"("x")"}, {"1"}});
  check({"{}", {"1", "null", R"("x")", "[]", "{}", R"([{"a": [1.5e+3]}])"}, {"", "x", "[1,2]"}});
  check({"true", {"1"}, {""}});
  check({R"({"type":"integer"})",
         {"0", "-1", "10", "123456789012345"},
         {"01", "-0", "1.0", "1e3", "+1", "1234567890123456"}});
  check({R"({"type":"number"})",
         {"0", "-0", "-1.5", "1e5", "1E-05", "1.25e+16", "0.001"},
         {"01", "1.", ".5", "1e", "1e123", "0.1234567890123456", "NaN", "--1"}});
}

TEST(JsonSchema, CountsCharactersOfStrings) {
  check({R"({"type":"string","minLength":2,"maxLength":3})",
         {R"("ab")", R"("abc")", R"("日本")", R"("\ud83d\ude00a")", R"("\n\"\\")", R"("\u00e9\u00E9")",
          "\"😀b\""},
         {R"("a")", R"("abcd")", R"("\ud83da")", R"("\ude00\ud83d")", R"("\n")", "\"a\nb\"", "\"\xE6\x97\"",
          "\"\xC0\x80zz\"", R"("a\x")", "ab"}});
  check({R"({"type":"string"})",
         {R"("")", R"("/\/")", "\"\x7F\""},
         {"\"\x1F\"", "\"\xFF\"", "\"\xED\xA0\x80\""}});
  check({R"({"type":"string","minLength":3})", {R"("abc")", R"("abcdefgh")"}, {R"("ab")"}});
}

TEST(JsonSchema, SearchesForPatternsUnlessTheyAreAnchored) {
  check({R"({"type":"string","pattern":"^[a-c]+\\d{2,3}$"})",
         {R"("a12")", R"("abc123")"},
         {R"("a1")", R"("a1234")", R"("xa12")", R"("a12x")", R"("12")"}});
  check(
      {R"({"type":"string","pattern":"b+"})", {R"("b")", R"("abba")", R"("日b\n")"}, {R"("")", R"("aac")"}});
  check({R"({"type":"string","pattern":"^a|b$"})",
         {R"("a")", R"("ax")", R"("xb")", R"("b")"},
         {R"("xa")", R"("bx")"}});
  check({R"({"type":"string","pattern":"^[\"\\\\\\n]$"})",
         {R"("\"")", R"("\\")", R"("\n")"},
         {"\"\n\"", R"("n")"}});
}

TEST(JsonSchema, KnowsFormats) {
  check({R"({"format":"date"})",
         {R"("2024-12-31")", R"("2024-02-28")"},
         {R"("2024-02-30")", R"("2024-13-01")"}});
  check({R"({"format":"date-time"})",
         {R"("2024-01-01T23:59:59Z")", R"("2024-01-01T00:00:00.5+01:00")"},
         {R"("2024-01-01")"}});
  check({R"({"format":"uuid"})", {R"("123e4567-e89b-12d3-a456-426614174000")"}, {R"("123e4567")"}});
  check({R"({"format":"email"})", {R"("a.b@example.org")"}, {R"("a@b")", R"("@example.org")"}});
  check({R"({"format":"ipv4"})", {R"("192.168.0.255")"}, {R"("256.1.1.1")", R"("1.1.1")"}});
  EXPECT_THAT(refusal(R"({"type":"string","format":"color"})"), HasSubstr("color"));
}

TEST(JsonSchema, CountsItems) {
  check({R"({"type":"array","items":{"type":"null"},"minItems":1,"maxItems":3})",
         {"[null]", "[null, null]", "[null, null, null]"},
         {"[]", "[null, null, null, null]", "[null,null]", "[null, ]", "[, null]"}});
  check({R"({"type":"array","items":{"type":"null"}})", {"[]", "[null, null, null, null]"}, {"[1]"}});
  check({R"({"type":"array","items":{"type":"null"},"maxItems":0})", {"[]"}, {"[null]"}});
  check(
      {R"({"prefixItems":[{"type":"null"},{"type":"boolean"}],"items":{"const":1},"minItems":1,"maxItems":3})",
       {"[null]", "[null, true]", "[null, true, 1]"},
       {"[]", "[true]", "[null, 1]", "[null, true, 1, 1]", "[null, true, 2]"}});
  check({R"({"prefixItems":[{"type":"null"}],"items":false})", {"[]", "[null]"}, {"[null, 1]"}});
  check({R"({"prefixItems":[{"type":"null"},{"type":"null"}],"minItems":3})",
         {"[null, null, 7]"},
         {"[null, null]"}});
  check({R"({"type":"array","minItems":1000,"maxItems":1000000,"items":{"const":1}})", {}, {"[1, 1]"}});
}

TEST(JsonSchema, HoldsIntegersToTheirLimits) {
  for (const auto& [least, most] : {std::pair(0, 0), std::pair(-7, 13), std::pair(5, 2301),
                                    std::pair(-150, -3), std::pair(99, 101), std::pair(-1000, 1000)}) {
    test::Reader reader(Structure::json_schema("{\"type\":\"integer\",\"minimum\":" + std::to_string(least) +
                                               ",\"maximum\":" + std::to_string(most) + "}"));
    for (int i = -2500; i <= 2500; ++i) {
      ASSERT_EQ(reader.fits(std::to_string(i)), i >= least && i <= most)
          << i << " in " << least << ".." << most;
    }
  }
  check({R"({"type":"integer","exclusiveMinimum":3,"maximum":5.5})", {"4", "5"}, {"3", "6", "5.5"}});
  check({R"({"type":"integer","minimum":-2.5,"exclusiveMaximum":1})", {"-2", "0"}, {"-3", "1"}});
  check({R"({"type":"integer","minimum":1})", {"1", "999999999999999"}, {"0", "-1"}});
  check({R"({"type":"integer","multipleOf":7})", {"0", "7", "-14", "7007"}, {"1", "8", "07"}});
  check({R"({"type":"integer","multipleOf":250,"minimum":-300,"maximum":700})",
         {"-250", "0", "500"},
         {"250.0", "750", "100"}});
}

TEST(JsonSchema, HoldsNumbersToTheirLimits) {
  const std::vector<std::string> texts = {
      "0",     "0.0",   "0.5", "0.49",  "0.51", "0.500", "1",    "1.5",   "1.25",  "1.24", "1.26",
      "2",     "2.75",  "2.7", "2.76",  "3",    "3.0",   "3.01", "10",    "99.9",  "100",  "-0.5",
      "-0.49", "-0.51", "-1",  "-1.25", "-1.3", "-2",    "-10",  "1.255", "2.749", "0.05", "0.001"};
  const std::vector<double> limits = {-1.25, -0.5, 0, 0.5, 1.25, 2.75, 3, 100};
  for (const double least : limits) {
    for (const double most : limits) {
      for (const bool above : {false, true}) {
        for (const bool below : {false, true}) {
          if (least > most || (least == most && (above || below))) continue;
          const std::string schema =
              std::string("{\"type\":\"number\",") + (above ? "\"exclusiveMinimum\":" : "\"minimum\":") +
              std::to_string(least) + "," + (below ? "\"exclusiveMaximum\":" : "\"maximum\":") +
              std::to_string(most) + "}";
          test::Reader reader(Structure::json_schema(schema));
          for (const std::string& text : texts) {
            const double value = std::stod(text);
            const bool wanted =
                (above ? value > least : value >= least) && (below ? value < most : value <= most);
            ASSERT_EQ(reader.fits(text), wanted) << text << " in " << schema;
          }
        }
      }
    }
  }
  check({R"({"type":"number","minimum":2.5})", {"2.5", "3", "1000.25"}, {"2.49", "-3", "2"}});
  check({R"({"type":"number","maximum":-2.5})", {"-2.5", "-3"}, {"-2.49", "2", "0"}});
}

TEST(JsonSchema, FollowsReferencesAlsoInCircles) {
  check({R"({"$defs":{"node":{"type":"object","properties":{"v":{"type":"null"},"next":{"anyOf":[
            {"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["v","next"],"additionalProperties":false}},
            "$ref":"#/$defs/node"})",
         {R"({"v": null, "next": null})", R"({"v": null, "next": {"v": null, "next": null}})"},
         {R"({"v": null})", R"({"v": null, "next": {}})"}});
  check({R"({"type":"array","items":{"$ref":"#"}})", {"[]", "[[], [[]]]"}, {"[", "[1]", "[[]"}});
  check({R"({"definitions":{"a/b":{"const":1}},"properties":{"x":{"$ref":"#/definitions/a~1b"}}})",
         {R"({"x": 1})"},
         {R"({"x": 2})"}});
  // A schema that is one of its own alternatives adds nothing.
  check({R"({"anyOf":[{"$ref":"#"},{"const":1}]})", {"1"}, {"2"}});
  // Nesting has a limit, from which on only what closes is allowed.
  test::Reader reader(Structure::json_schema(R"({"type":"array","items":{"$ref":"#"}})"));
  const std::string deep(100, '[');
  EXPECT_TRUE(reader.fits(deep + std::string(100, ']')));
  EXPECT_FALSE(reader.begins(std::string(10000, '[')));
}

TEST(JsonSchema, CombinesSchemas) {
  check({R"({"oneOf":[{"type":"null"},{"type":"string","maxLength":1}]})", {"null", R"("x")"}, {R"("xy")"}});
  check(
      {R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"}},"additionalProperties":false,
            "anyOf":[{"required":["a"]},{"required":["b"]}]})",
       {R"({"a": null})", R"({"b": null})", R"({"a": null, "b": null})"},
       {"{}"}});
  check({R"({"allOf":[{"$ref":"#/$defs/base"},{"properties":{"b":{"type":"null"}},"required":["b"]}],
            "$defs":{"base":{"type":"object","properties":{"a":{"type":"null"}},"required":["a"]}}})",
         {R"({"a": null, "b": null})"},
         {R"({"a": null})", R"({"b": null})"}});
  check({R"({"allOf":[{"type":"integer","minimum":1},{"type":"number","maximum":3},{"minimum":2}]})",
         {"2", "3"},
         {"1", "4", "2.5"}});
  check({R"({"$ref":"#/$defs/s","maxLength":1,"$defs":{"s":{"type":"string"}}})", {R"("x")"}, {R"("xy")"}});
}

TEST(JsonSchema, KeepsUnicodeKeysAsTheyAre) {
  check(
      {R"({"type":"object","properties":{"größe":{"type":"null"},"名前":{"type":"null"},"q\"k\\":{"type":"null"}},
            "required":["größe","名前","q\"k\\"],"additionalProperties":false})",
       {R"({"größe": null, "名前": null, "q\"k\\": null})"},
       {R"({"gr\u00f6\u00dfe": null, "名前": null, "q\"k\\": null})"}});
}

TEST(JsonSchema, NamesThePlaceOfWhatItRefuses) {
  EXPECT_THAT(refusal(R"({"properties":{"a":{"properties":{"b":{"foo":1}}}}})"),
              testing::AllOf(HasSubstr("#/properties/a/properties/b"), HasSubstr("foo")));
  EXPECT_THAT(refusal(R"({"type":"strin"})"), HasSubstr("strin"));
  EXPECT_THAT(refusal("{"), HasSubstr("JSON"));
  EXPECT_THAT(refusal(R"({"a":1,"a":2})"), HasSubstr("twice"));
  EXPECT_THAT(refusal("[]"), HasSubstr("#"));
  EXPECT_THAT(refusal(R"({"$ref":"#/nowhere"})"), HasSubstr("nowhere"));
  EXPECT_THAT(refusal(R"({"$ref":"http://example.org/x"})"), HasSubstr("example.org"));
  EXPECT_THAT(refusal(R"x({"type":"string","pattern":"(?=a)"})x"), HasSubstr("(?=a)"));
  EXPECT_THAT(refusal(R"({"type":"string","pattern":"a{"})"), HasSubstr("pattern"));
  EXPECT_THAT(refusal(R"({"type":"array","uniqueItems":true})"), HasSubstr("uniqueItems"));
  EXPECT_THAT(refusal(R"({"type":"number","multipleOf":0.1})"), HasSubstr("multipleOf"));
  EXPECT_THAT(refusal(R"({"type":"number","minimum":1e300})"), HasSubstr("minimum"));
  EXPECT_THAT(refusal(R"({"type":"string","minLength":-1})"), HasSubstr("minLength"));
  EXPECT_THAT(refusal(R"({"type":"string","minLength":1,"pattern":"a"})"), HasSubstr("pattern"));
  EXPECT_THAT(refusal(R"({"required":["a"],"properties":{},"additionalProperties":false})"),
              HasSubstr("required"));
  EXPECT_THAT(refusal(R"({"enum":[1,2],"minimum":2})"), HasSubstr("minimum"));
  EXPECT_THAT(refusal(R"({"enum":"abc"})"), HasSubstr("enum"));
}

TEST(JsonSchema, RefusesWhatAllowsNothing) {
  for (const char* schema :
       {"false", R"({"enum":[]})", R"({"type":"string","enum":[1]})", R"({"minLength":3,"maxLength":2})",
        R"({"type":"integer","minimum":5,"maximum":4})", R"({"type":"number","minimum":5,"maximum":4})",
        R"({"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":2})",
        R"({"type":"number","exclusiveMinimum":1,"maximum":1})", R"({"$ref":"#"})",
        R"({"type":"array","items":{"$ref":"#"},"minItems":1})",
        R"({"allOf":[{"type":"null"},{"type":"string"}]})",
        R"({"type":"object","properties":{"a":false},"required":["a"]})",
        R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})"}) {
    EXPECT_NE(refusal(schema), "nothing was refused") << schema;
  }
  // A property that cannot be there is no harm where it is optional.
  check({R"({"type":"object","properties":{"a":false,"b":{"type":"null"}}})",
         {"{}", R"({"b": null})"},
         {R"({"a": 1})"}});
}

TEST(JsonSchema, RefusesWhatIsTooLarge) {
  std::string deep = "{}";
  for (int i = 0; i < 200; ++i) deep = R"({"type":"array","items":)" + deep + "}";
  EXPECT_NE(refusal(deep), "nothing was refused");
  // References that double at every level.
  std::string defs;
  for (int i = 0; i < 30; ++i) {
    const std::string next =
        "{\"$ref\":\"#/$defs/d" + std::to_string(i + 1) + "\",\"minItems\":" + std::to_string(i) + "}";
    defs += "\"d" + std::to_string(i) + R"(":{"anyOf":[)" + next + "," + next + "]},";
  }
  EXPECT_NE(refusal("{\"$ref\":\"#/$defs/d0\",\"maxItems\":7,\"$defs\":{" + defs +
                    "\"d30\":{\"type\":\"array\"}}}"),
            "nothing was refused");
  EXPECT_NE(refusal(R"({"allOf":[{"$ref":"#"}]})"), "nothing was refused");
  std::string repeats = "a";
  for (int i = 0; i < 14; ++i) repeats = "(" + repeats + "|" + repeats + "b){1,1}";
  EXPECT_NE(refusal(R"({"type":"string","pattern":")" + repeats + "\"}"), "nothing was refused");
}

TEST(JsonSchema, TakesLimitsBeyondAllDigitsForNone) {
  // Those of safe integers and of 64 bits.
  for (const char* schema :
       {R"({"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991})",
        R"({"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807})",
        R"({"type":"integer","exclusiveMinimum":-1e300,"exclusiveMaximum":1e300})"}) {
    check({schema, {"0", "-1", "999999999999999", "-999999999999999"}, {"1000000000000000", "1.5", "-0"}});
  }
  check({R"({"type":"number","maximum":9007199254740991})",
         {"999999999999999.999999999999999", "-999999999999999.5", "0.5"},
         {"1e99", "1e2", "9999999999999999"}});
  check({R"({"type":"integer","minimum":0,"maximum":9007199254740991,"multipleOf":1})", {"7"}, {"-7"}});
  check({R"({"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991,"multipleOf":7})",
         {"700", "-7"},
         {"8"}});
  EXPECT_THAT(refusal(R"({"type":"integer","minimum":9007199254740991})"), HasSubstr("minimum"));
  EXPECT_THAT(refusal(R"({"type":"number","maximum":-1e15})"), HasSubstr("maximum"));
}

TEST(JsonSchema, HoldsNumbersToSmallLimits) {
  check({R"({"type":"number","minimum":0.00001,"maximum":0.0025})",
         {"0.00001", "0.002", "0.0025"},
         {"0", "0.000009", "0.00251"}});
  check({R"({"type":"number","exclusiveMinimum":-1.5e-7})", {"-0.0000001", "0"}, {"-0.00000015", "-0.1"}});
  EXPECT_THAT(refusal(R"({"type":"number","minimum":1e-16})"), HasSubstr("digits"));
  EXPECT_THAT(refusal(R"({"type":"number","minimum":1.23456789012e-10})"), HasSubstr("digits"));
}

TEST(JsonSchema, DistributesAlternativesThatBothHold) {
  check({R"({"allOf":[{"anyOf":[{"type":"integer"},{"type":"string"}]},
                      {"anyOf":[{"type":"string","maxLength":1},{"type":"boolean"},{"type":"integer","maximum":3}]}]})",
         {"3", R"("x")"},
         {"4", R"("xy")", "true"}});
  check({R"({"anyOf":[{"required":["a"]},{"required":["b"]}],"oneOf":[{"required":["c"]},{"required":["d"]}],
            "type":"object","properties":{"a":{"const":1},"b":{"const":1},"c":{"const":1},"d":{"const":1}}})",
         {R"({"a": 1, "c": 1})", R"({"b": 1, "c": 1, "d": 1})"},
         {R"({"a": 1, "b": 1})", R"({"d": 1})"}});
}

TEST(JsonSchema, HoldsPropertiesToTheAdditionalPropertiesOfAnother) {
  check({R"({"allOf":[{"type":"object","additionalProperties":{"type":["string","integer"]}},
                      {"properties":{"y":{"type":["integer","null"]}},"required":["y"]}]})",
         {R"({"y": 1})"},
         {R"({"y": null})", R"({"y": "a"})"}});
  EXPECT_NE(refusal(R"({"allOf":[{"type":"object","additionalProperties":{"type":"string"}},
                                 {"properties":{"y":{"type":"integer"}},"required":["y"]}]})"),
            "nothing was refused");
}

TEST(JsonSchema, RefusesItemsBesideThePrefixItemsOfAnother) {
  EXPECT_THAT(refusal(R"({"allOf":[{"items":{"type":"string"}},{"prefixItems":[{"type":"integer"}]}]})"),
              HasSubstr("prefixItems"));
  check({R"({"allOf":[{"items":true},{"prefixItems":[{"type":"integer"}]}]})", {"[1]"}, {R"(["a"])"}});
}

TEST(JsonSchema, FollowsLongChainsOfReferencesAndRefusesDeepNesting) {
  const auto chain = [](const std::string& before, const std::string& after) {
    std::string defs;
    for (int i = 0; i < 300; ++i) {
      defs += "\"d" + std::to_string(i) + "\":" + before + R"({"$ref":"#/$defs/d)" + std::to_string(i + 1) +
              "\"}" + after + ",";
    }
    return R"({"$ref":"#/$defs/d0","$defs":{)" + defs + R"("d300":{"const":7}}})";
  };
  check({chain("", "").c_str(), {"7"}, {"8"}});
  EXPECT_THAT(refusal(chain(R"({"type":"array","minItems":1,"items":)", "}")), HasSubstr("deeper"));
}

TEST(JsonSchema, RefusesWhatTakesLongToMerge) {
  std::string values = "0";
  for (int i = 1; i < 100'000; ++i) values += "," + std::to_string(i);
  std::string references = R"({"$ref":"#/$defs/e"})";
  for (int i = 1; i < 10'000; ++i) references += R"(,{"$ref":"#/$defs/e"})";
  EXPECT_THAT(refusal(R"({"type":"integer","anyOf":[)" + references + R"(],"$defs":{"e":{"enum":[)" + values +
                      "]}}}"),
              HasSubstr("unfolds"));
  std::string properties[2];
  for (int i = 0; i < 4000; ++i) {
    properties[i % 2] += (i < 2 ? "\"p" : ",\"p") + std::to_string(i) + "\":true";
  }
  references = R"({"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"})";
  for (int i = 1; i < 2'000; ++i) references += R"(,{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"})";
  EXPECT_THAT(refusal(R"({"allOf":[)" + references + R"(],"$defs":{"a":{"properties":{)" + properties[0] +
                      R"(}},"b":{"properties":{)" + properties[1] + "}}}}"),
              HasSubstr("unfolds"));
  std::string keys = "\"k\":0";
  for (int i = 0; i < 6000; ++i) keys += ",\"" + std::to_string(i) + "\":0";
  EXPECT_THAT(refusal(R"({"default":{)" + keys + "}}"), HasSubstr("keys"));
}

}  // namespace
}  // namespace verbatim
