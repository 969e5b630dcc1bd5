#include "verbatim/chat.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/byte_model.h"

namespace verbatim {
namespace chat_test {
namespace {

const Model& model() {
  return test::byte_pair().target;
}

GenerateResult reply_of(const std::string& text, FinishReason finish) {
  GenerateResult result;
  result.text = text;
  result.tokens = model().encode(text, false);
  result.stats.finish = finish;
  return result;
}

TEST(Chat, WritesTheHistoryAsTheModelShouldSeeIt) {
  Chat chat(model(), "Be brief.");
  EXPECT_EQ(chat.format().name, "plain");
  chat.add_user("Hi?");
  EXPECT_EQ(model().decode(chat.tokens()), "Be brief.\n\nQuestion: Hi?\nAnswer:");
  EXPECT_EQ(chat.tokens().front(), model().bos_token());
  chat.add_reply(reply_of(" Yes.", FinishReason::kLength));
  chat.add_user("And?");
  EXPECT_EQ(model().decode(chat.tokens()),
            "Be brief.\n\nQuestion: Hi?\nAnswer: Yes.\n\nQuestion: And?\nAnswer:");
  ASSERT_EQ(chat.messages().size(), 4u);
  EXPECT_EQ(chat.messages()[0].role, ChatMessage::Role::kSystem);
  EXPECT_EQ(chat.messages()[2].text, " Yes.");
  EXPECT_EQ(chat.turns(), 1);
  chat.clear();
  EXPECT_EQ(chat.messages().size(), 1u);
  EXPECT_TRUE(chat.tokens().empty());
}

TEST(Chat, LeavesOutWhatOnlyEndedAReply) {
  const auto history = [](GenerateResult reply) {
    Chat chat(model(), chat_format("plain"));
    chat.add_user("?");
    chat.add_reply(reply);
    return model().decode(chat.tokens());
  };
  const std::string prompt = "Question: ?\nAnswer:";
  GenerateResult ended = reply_of("No", FinishReason::kEndOfSequence);
  ended.tokens.push_back(model().eos_tokens().front());
  EXPECT_EQ(history(ended), prompt + "No");
  GenerateResult stopped = reply_of("No\nQuest", FinishReason::kStopString);
  stopped.text = "No";
  EXPECT_EQ(history(stopped), prompt + "No");
  EXPECT_EQ(history(reply_of("No", FinishReason::kCancelled)), prompt + "No");
}

TEST(Chat, SpecialTokensWrittenInAMessageStayText) {
  for (const std::string& name : chat_format_names()) {
    const auto tokens = [&](const std::string& system, const std::string& text) {
      Chat chat(model(), chat_format(name), system);
      chat.add_user(text);
      return std::ssize(chat.tokens());
    };
    const std::string steering = "</s><s></s>";  // the vocabulary has these tokens, and one for every byte
    EXPECT_EQ(tokens("s", "a" + steering) - tokens("s", "a"), std::ssize(steering)) << name;
    EXPECT_EQ(tokens("s" + steering, "a") - tokens("s", "a"), std::ssize(steering)) << name;
  }
  Chat chat(model(), chat_format("mistral"));
  chat.add_user("a");
  chat.add_reply("b");
  chat.add_user("c");
  EXPECT_EQ(std::count(chat.tokens().begin(), chat.tokens().end(), model().eos_tokens().front()), 1)
      << "the token with which the format ends a reply";
}

TEST(Chat, TakesRepliesAsTextToo) {
  Chat chat(model());
  chat.add_user("1");
  chat.add_reply("one");
  chat.add_user("2");
  EXPECT_EQ(model().decode(chat.tokens()), "Question: 1\nAnswer:one\n\nQuestion: 2\nAnswer:");
}

TEST(Chat, RefusesMessagesOutOfTurnOrTooLongAndStaysAsItWas) {
  Chat chat(model());
  EXPECT_THROW(chat.add_reply("?"), Error);
  chat.add_user("Hi");
  EXPECT_THROW(chat.add_user("Hi"), Error);
  chat.add_reply("Ho");
  const std::vector<int32_t> tokens = chat.tokens();
  EXPECT_THROW(chat.add_user(std::string(300, 'x')), Error);
  EXPECT_THROW(chat.add_user("\xff"), Error);
  EXPECT_EQ(chat.tokens(), tokens);
  EXPECT_EQ(chat.messages().size(), 2u);
  chat.add_user("still here");
}

TEST(Chat, AnEngineAnswersAndStopsWhereTheFormatSays) {
  Chat chat(model());
  GenerateOptions options;
  options.max_tokens = 12;
  chat.add_stops(options);
  EXPECT_EQ(options.stop, std::vector<std::string>{"\nQuestion:"});
  Engine engine(model(), {.max_batch = 1, .threads = 1});
  const Recipe recipe = test::made_recipes(100)[0];
  for (const char* message : {"Hi", "Ho"}) {
    chat.add_user(message);
    chat.add_reply(engine.generate({chat.tokens(), options, recipe}));
  }
  EXPECT_EQ(chat.turns(), 2);
  EXPECT_GT(engine.stats().prompt_tokens_remembered, 0);
}

TEST(ChatFormats, AreKnownByName) {
  const std::vector<std::string> names = chat_format_names();
  EXPECT_EQ(names, (std::vector<std::string>{"chatml", "llama-3", "llama-2", "mistral", "plain"}));
  EXPECT_THROW(chat_format("alpaca"), Error);
  EXPECT_EQ(detect_chat_format(model()).name, "plain");
  Chat llama(model(), chat_format("llama-3"));
  GenerateOptions options;
  llama.add_stops(options);
  EXPECT_EQ(options.stop, (std::vector<std::string>{"<|eot_id|>", "<|eom_id|>"}));  // no such tokens here
}

TEST(ModelTokens, HavePiecesTextAndNames) {
  EXPECT_EQ(model().bos_token(), 1);
  EXPECT_EQ(model().eos_tokens(), std::vector<int32_t>{2});
  EXPECT_EQ(model().piece(2), "</s>");
  EXPECT_EQ(model().token_text(2), "");
  EXPECT_EQ(model().piece(test::kFirstByte + 'a'), "<0x61>");
  EXPECT_EQ(model().token_text(test::kFirstByte + 'a'), "a");
  EXPECT_EQ(model().find_token("</s>"), 2);
  EXPECT_EQ(model().find_token("<|im_end|>"), std::nullopt);
  EXPECT_THROW(model().piece(260), Error);
  EXPECT_THROW(model().token_text(-1), Error);
}

TEST(Chat, AReplyMayEndInsideACharacter) {
  Chat chat(model(), ChatTemplate("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"));
  chat.add_user("1");
  GenerateResult reply = reply_of("caf", FinishReason::kLength);
  reply.text += '\xC3';
  reply.tokens.push_back(test::kFirstByte + 0xC3);
  chat.add_reply(reply);
  EXPECT_NO_THROW(chat.add_user("2"));
  EXPECT_TRUE(model().decode(chat.tokens()).ends_with("user: 2\n"));
}

}  // namespace
}  // namespace chat_test
}  // namespace verbatim
