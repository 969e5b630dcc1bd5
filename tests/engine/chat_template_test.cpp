#include "verbatim/chat_template.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/byte_model.h"

namespace verbatim {
namespace {

const Model& model() {
  return test::byte_pair().target;
}

TEST(ChatTemplateTokens, RecognizeSpecialTokensOnlyInTheTemplatesText) {
  const ChatTemplate chat_template("{{ messages[0].content }}{{ eos_token }}");
  const std::vector<PromptPart> parts =
      chat_template.render(R"({"messages": [{"content": "a</s>"}]})", &model());
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_FALSE(parts[0].from_template);
  const std::vector<int32_t> tokens = encode(model(), parts);
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), 2), 1);
  EXPECT_EQ(tokens.back(), 2);
  // A special token that the data completes is none.
  const std::vector<int32_t> halves = encode(model(), {{"</", true}, {"s>", false}});
  EXPECT_EQ(std::count(halves.begin(), halves.end(), 2), 0);
}

TEST(ChatTemplateTokens, BeginWithOneBeginningOfSequence) {
  EXPECT_EQ(encode(model(), {{"<s>a", true}}), encode(model(), {{"a", true}}));
  EXPECT_EQ(encode(model(), {{"a", true}}), model().encode("a"));
}

TEST(ChatTemplateTokens, OfTheRestAreThoseOfTheWholeText) {
  EXPECT_EQ(encode(model(), {{"one te", true}, {"xt of two parts", false}}),
            model().encode("one text of two parts"));
}

TEST(ChatTemplateChat, KeepsTheTokensOfReplies) {
  Chat chat(model(), ChatTemplate("{% for m in messages %}{{ m.role[0] }}:{{ m.content }};{% endfor %}a:"));
  chat.add_user("Hi");
  EXPECT_EQ(model().decode(chat.tokens()), "u:Hi;a:");
  const std::vector<int32_t> before = chat.tokens();
  chat.add_reply("Ho");
  chat.add_user("And");
  EXPECT_EQ(model().decode(chat.tokens()), "u:Hi;a:Ho;u:And;a:");
  EXPECT_TRUE(std::equal(before.begin(), before.end(), chat.tokens().begin()));
}

}  // namespace
}  // namespace verbatim
