#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_data.h"
#include "verbatim/agent.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

using ::testing::HasSubstr;

std::string failure(const std::string& text, const std::string& model) {
  const test::TemporaryFolder folder;
  folder.write("prices.toml", text);
  try {
    read_agent_prices(folder.path() / "prices.toml", model);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(AgentPrices, AreThoseOfTheModel) {
  const test::TemporaryFolder folder;
  folder.write("prices.toml", "[large]\nprompt = 30\nreply = 60.5\n[\"small-3.5\"]\nprompt = 1\nreply = 0\n");
  const AgentPrices large = read_agent_prices(folder.path() / "prices.toml", "large");
  EXPECT_EQ(large.prompt, 30);
  EXPECT_EQ(large.reply, 60.5);
  EXPECT_EQ(read_agent_prices(folder.path() / "prices.toml", "small-3.5").prompt, 1);
}

TEST(AgentPrices, AreRefusedWhereTheyAreNotUnderstood) {
  EXPECT_THAT(failure("[a]\nprompt = 1\nreply = 1\n", "b"),
              HasSubstr("no price of the model `b`; there are `a`"));
  EXPECT_THAT(failure("", "b"), HasSubstr("there are none"));
  EXPECT_THAT(failure("a = 1\n", "a"), HasSubstr("`a` should be a table"));
  EXPECT_THAT(failure("[a]\nprompt = 1\n", "a"), HasSubstr("[a]: `reply` should be the price"));
  EXPECT_THAT(failure("[a]\nprompt = -1\nreply = 1\n", "a"), HasSubstr("[a]: `prompt` should be the price"));
  EXPECT_THAT(failure("[a]\nprompt = true\nreply = 1\n", "a"),
              HasSubstr("[a]: `prompt` should be the price"));
  EXPECT_THAT(failure("[a]\nprompts = 1\n", "a"), HasSubstr("`prompts` is no key here"));
  EXPECT_THAT(failure("[a\n", "a"), HasSubstr("line 1"));
}

}  // namespace
}  // namespace verbatim
