#include "text/chat_format.h"

#include <gtest/gtest.h>

#include "text/tokenizer_json.h"
#include "tokenizer_support.h"

namespace verbatim {
namespace {

std::string detected(const std::string& token) {
  const auto tokenizer = parse_tokenizer_json(
      R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "added_tokens": [{"id": 1, "special": true, "content": ")" +
          token + R"("}]})",
      {});
  return detect_chat_format(*tokenizer).name;
}

TEST(ChatFormat, IsDetectedByTheSpecialTokens) {
  EXPECT_EQ(detected("<|im_start|>"), "chatml");
  EXPECT_EQ(detected("<|start_header_id|>"), "llama-3");
  EXPECT_EQ(detected("[INST]"), "mistral");
  EXPECT_EQ(detected("<s>"), "plain");
}

TEST(ChatFormat, EveryFormatGoesByItsName) {
  for (const std::string& name : chat_format_names()) {
    const ChatFormat format = chat_format(name);
    EXPECT_EQ(format.name, name);
    EXPECT_FALSE(format.stop_tokens.empty() && format.stop_strings.empty()) << "something must end a reply";
  }
  try {
    chat_format("alpaca");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_STREQ(error.what(),
                 "there is no chat format 'alpaca' (there are: chatml, llama-3, llama-2, mistral, plain)");
  }
}

std::string text_of(const std::vector<PromptPart>& parts) {
  std::string text;
  for (const PromptPart& part : parts) text += part.text;
  return text;
}

TEST(ChatFormat, TurnsJoinedWithRepliesFormTheConversation) {
  const auto conversation = [](const char* name) {
    const ChatFormat format = chat_format(name);
    return text_of(render_user_turn(format, "S", "U1", true)) + "R1" +
           text_of(render_user_turn(format, "S", "U2", false));
  };
  EXPECT_EQ(
      conversation("chatml"),
      "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU1<|im_end|>\n<|im_start|>assistant\nR1<|im_end|>\n"
      "<|im_start|>user\nU2<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(conversation("llama-3"),
            "<|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>user<|end_header_id|"
            ">\n\nU1"
            "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nR1<|eot_id|><|start_header_id|>user"
            "<|end_header_id|>\n\nU2<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n");
  EXPECT_EQ(conversation("llama-2"), "[INST] <<SYS>>\nS\n<</SYS>>\n\nU1 [/INST]R1</s><s>[INST] U2 [/INST]");
  EXPECT_EQ(conversation("mistral"), "[INST] S\n\nU1 [/INST]R1</s>[INST] U2 [/INST]");
  EXPECT_EQ(conversation("plain"), "S\n\nQuestion: U1\nAnswer:R1\n\nQuestion: U2\nAnswer:");
}

TEST(ChatFormat, WithoutASystemTextNothingStandsForIt) {
  EXPECT_EQ(text_of(render_user_turn(chat_format("llama-2"), "", "U", true)), "[INST] U [/INST]");
  EXPECT_EQ(text_of(render_user_turn(chat_format("plain"), "", "U", true)), "Question: U\nAnswer:");
}

TEST(ChatFormat, WhatSystemAndUserSayIsNoPartOfTheFormat) {
  for (const std::string& name : chat_format_names()) {
    std::string said;
    for (const PromptPart& part : render_user_turn(chat_format(name), "S", "U", true)) {
      if (!part.from_template) said += part.text;
    }
    EXPECT_EQ(said, "SU") << name;
  }
}

}  // namespace
}  // namespace verbatim
