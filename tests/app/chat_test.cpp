#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "support/run_program.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"
#include "text/tokenizer.h"

namespace verbatim {
namespace {

using test::lines_of;
using test::run_program;
using test::RunOptions;
using test::RunResult;
using ::testing::HasSubstr;

std::shared_ptr<const Tokenizer> default_tokenizer() {
  return load_tokenizer(
      {TokenizerSource::Kind::kSentencePieceModel, test::default_model() / "tokenizer.model"});
}

/// Writes a model of which each of these tokens calls forth the next, whatever came before: its layers add
/// nothing, and its output matrix maps the embedding of a token to its successor.
void write_scripted_model(const test::TemporaryFolder& folder, const std::vector<Token>& script) {
  test::TinyModelOptions options;
  options.hidden_size = 64;
  options.layers = 1;
  options.vocab_size = 4096;
  test::write_tiny_llama(folder.path(), options);
  std::vector<test::NamedTensor> tensors = test::tiny_tensors(options);
  const auto place = [&](Token token, size_t column) { return static_cast<size_t>(token) * 64 + column; };
  for (test::NamedTensor& tensor : tensors) {
    const bool embedding = tensor.name == "model.embed_tokens.weight";
    const bool head = tensor.name == "lm_head.weight";
    const bool adds = tensor.name.ends_with("o_proj.weight") || tensor.name.ends_with("down_proj.weight");
    if (embedding || head || adds) std::fill(tensor.values.begin(), tensor.values.end(), 0.0f);
    for (size_t i = 0; i + 1 < script.size(); ++i) {
      if (embedding) tensor.values[place(script[i], i)] = 1.0f;
      if (head) tensor.values[place(script[i + 1], i)] = 1.0f;
    }
  }
  folder.write("model.safetensors", test::safetensors_file(tensors, DType::kF32));
  for (const char* name : {"tokenizer.model", "tokenizer_config.json"}) {
    std::filesystem::copy(test::default_model() / name, folder.path() / name);
  }
}

class Chat : public ::testing::Test {
 protected:
  RunResult chat(const std::string& input, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"chat", test::default_model().string()});
    RunOptions options;
    options.input = input;
    return run_program(more, options);
  }

  /// What the model continues a text with, as chat prints it.
  std::string reply_to(const std::string& prompt, const std::string& tokens) {
    const RunResult result = run_program(
        {"generate", test::default_model().string(), "-p", prompt, "-n", tokens, "--stop", "\nQuestion:"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out.ends_with('\n') ? result.out : result.out + "\n";
  }
};

TEST_F(Chat, PrintsJustTheReplies) {
  const RunResult result = chat("What is 2 + 3?\n\n  \n", {"-n", "10"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, reply_to("Question: What is 2 + 3?\nAnswer:", "10"));
  EXPECT_THAT(result.err, HasSubstr("> What is 2 + 3?"));
}

TEST_F(Chat, TakesADraftModel) {
  const std::string model = test::default_model();
  const RunResult result = chat("What is 2 + 3?\n/stats\nAnd 4?\n",
                                {"-n", "10", "--recipe", "draft-model", "--draft-model", model});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, chat("What is 2 + 3?\nAnd 4?\n", {"-n", "10", "--recipe", "plain"}).out);
  EXPECT_THAT(result.err, HasSubstr("with draft-model"));
  EXPECT_EQ(chat("Hello\n", {"--recipe", "draft-model"}).exit_code, 2);
  const RunResult lossy = chat("Hello\n", {"-n", "2", "--recipe", "bild", "--draft-model", model});
  EXPECT_THAT(lossy.err, HasSubstr("the recipe bild is not lossless"));
}

TEST_F(Chat, KeepsTheHistoryUntilReset) {
  const std::string first = "Question: There are 3 cats.\nAnswer:";
  const std::string second = "Question: How many?\nAnswer:";
  const std::string first_reply = reply_to(first, "8");
  const std::string first_text = first_reply.substr(0, first_reply.size() - 1);
  const std::string with_history = reply_to(first + first_text + "\n\n" + second, "8");
  const std::string without_history = reply_to(second, "8");
  ASSERT_NE(with_history, without_history);
  const RunResult result = chat("There are 3 cats.\nHow many?\n/reset\nHow many?\n/stats\n", {"-n", "8"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, first_reply + with_history + without_history);
  EXPECT_THAT(result.err, HasSubstr("a new conversation"));
  EXPECT_THAT(result.err, HasSubstr("conversation: 1 turn"));
}

TEST_F(Chat, TellsTheModelTheSystemText) {
  const RunResult result = chat("Hello\n", {"-n", "6", "--system", "import os"});
  EXPECT_EQ(result.out, reply_to("import os\n\nQuestion: Hello\nAnswer:", "6"));
}

TEST_F(Chat, FormatsMayBeForced) {
  const RunResult result = chat("Hello\n", {"-n", "6", "--format", "mistral"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, reply_to("[INST] Hello [/INST]", "6"));
}

TEST_F(Chat, ObeysCommands) {
  const RunResult result = chat("/help\n/quit\nWhat is 2 + 3?\n");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "");
  for (const char* command : {"/help ", "/reset ", "/stats ", "/quit "}) {
    EXPECT_THAT(result.err, HasSubstr(command));
  }
}

TEST_F(Chat, GoesOnAfterWhatItCannotTake) {
  const RunResult result = chat("caf\xe9\n/dance\nHello\n", {"-n", "4"});
  EXPECT_EQ(result.exit_code, 1) << "a script must learn that not every line was answered";
  EXPECT_EQ(result.out, reply_to("Question: Hello\nAnswer:", "4"));
  EXPECT_THAT(result.err, HasSubstr("verbatim: the message is not valid UTF-8 at byte 3"));
  EXPECT_THAT(result.err, HasSubstr("verbatim: there is no command /dance"));
}

TEST_F(Chat, SaysWhenTheContextIsFull) {
  std::string numbers;
  for (int i = 0; i < 300; ++i) numbers += "1 2 ";
  const RunResult result = chat(numbers + "\n" + numbers + "\n/reset\nHello\n", {"-n", "4"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("verbatim: the message takes"));
  EXPECT_THAT(result.err, HasSubstr("shorten it"));
  EXPECT_TRUE(result.out.ends_with(reply_to("Question: Hello\nAnswer:", "4"))) << result.out;

  const std::string half = numbers.substr(0, numbers.size() / 4);
  const RunResult full = chat(half + "\n" + half + "\n" + half + "\n" + half + "\n", {"-n", "4"});
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_THAT(full.err, HasSubstr("verbatim: the context is full"));
  EXPECT_THAT(full.err, HasSubstr("/reset begins anew"));
}

TEST_F(Chat, WhatEndedAReplyDoesNotStayInTheHistory) {
  const auto tokenizer = default_tokenizer();
  const auto encode = [&](const char* text) { return tokenizer->encode(text, {.add_bos = false}); };
  const std::vector<Token> prompt = encode("Question: hi\nAnswer:");
  const std::vector<Token> reply = encode(" yes");
  for (const std::vector<Token>& end :
       {encode("\nQuestion:"), std::vector<Token>{tokenizer->eos().value()}}) {
    std::vector<Token> script = {prompt.back()};
    script.insert(script.end(), reply.begin(), reply.end());
    script.insert(script.end(), end.begin(), end.end());
    const test::TemporaryFolder folder;
    write_scripted_model(folder, script);
    RunOptions options;
    options.input = "hi\n/stats\nhi\n";
    const RunResult result = run_program({"chat", folder.path(), "-n", "40"}, options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, " yes\n yes\n");
    const size_t history = 1 + prompt.size() + reply.size();  // with the beginning of the sequence
    EXPECT_THAT(result.err, HasSubstr(fmt::format("conversation: 1 turn, {} of 256 tokens", history)));
  }
}

TEST_F(Chat, CtrlCStopsAReplyAndNotTheProgram) {
  RunOptions options;
  options.input = "Hello\n/stats\n";
  options.interrupt_on_output = true;
  const RunResult result =
      run_program({"chat", test::default_model().string(), "-n", "900", "--recipe", "plain"}, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("stopped by cancelled"));
}

}  // namespace
}  // namespace verbatim
