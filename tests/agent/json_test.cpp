#include "agent/json.h"

#include <gtest/gtest.h>

namespace verbatim::agent {
namespace {

std::string object_of(size_t members) {
  std::string text = "{";
  for (size_t i = 0; i < members; ++i) text += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":[{}]";
  return text + "}";
}

TEST(AgentJson, RefusesAnObjectOfTooManyMembersAtOnce) {
  EXPECT_EQ(parse_json(object_of(2000))->size(), 2000u);
  std::string why;
  EXPECT_FALSE(parse_json(object_of(2001), &why));
  EXPECT_EQ(why, "an object of the JSON has more than 2000 members");
  EXPECT_FALSE(parse_json("[1, {\"a\": " + object_of(700'000) + "}]", &why));
  const std::string many = "[" + object_of(1500) + "," + object_of(1500) + "]";  // each has its own number
  EXPECT_TRUE(parse_json(many));
}

TEST(AgentJson, TakesTimeInProportionToALongList) {
  std::string text = "[{}";
  for (int i = 0; i < 1'000'000; ++i) text += ",{}";
  EXPECT_EQ(parse_json(text + "]")->size(), 1'000'001u);
}

TEST(AgentJson, CountsNothingWithinStrings) {
  std::string text = "{\"a\": \"\\\\\\\"";
  for (int i = 0; i < 3000; ++i) text += ":[{";
  const std::optional<Json> json = parse_json(text + "\"}");
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["a"].get<std::string>().size(), 9002u);
  EXPECT_FALSE(parse_json("\""));
  EXPECT_FALSE(parse_json("\"\\"));
  EXPECT_FALSE(parse_json("]]]:"));
}

TEST(AgentJson, RefusesWhatLiesTooDeep) {
  EXPECT_TRUE(parse_json(std::string(64, '[') + std::string(64, ']')));
  std::string why;
  EXPECT_FALSE(parse_json(std::string(65, '[') + std::string(65, ']'), &why));
  EXPECT_EQ(why, "the JSON lies deeper than 64");
}

}  // namespace
}  // namespace verbatim::agent
