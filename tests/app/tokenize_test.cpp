#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/run_program.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"
#include "verbatim/verbatim.h"

namespace verbatim {
namespace tokenize_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::expect_refused;
using test::lines_of;
using test::run_program;
using test::RunResult;
using ::testing::HasSubstr;

const char* const kText = "  def f(x):\n\treturn \"caf\u00e9 \u4f60\u597d\"\n\n";

std::string tokenized(std::vector<std::string> more, const std::string& input = {}) {
  more.insert(more.begin(), {"tokenize", test::draft_model()});
  test::RunOptions options;
  options.input = input;
  const RunResult result = run_program(more, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return result.out;
}

/// The object with these ids.
std::string object_of(const std::vector<int32_t>& tokens) {
  return "{\"tokens\":" + json(tokens).dump() + "}\n";
}

class Tokenize : public testing::Test {
 protected:
  const ModelVocabulary vocabulary_ = ModelVocabulary::load(test::draft_model());
};

TEST_F(Tokenize, PrintsOneObjectWithTheIdsWhereverTheTextComesFrom) {
  const test::TemporaryFolder folder;
  const std::string expected = object_of(vocabulary_.encode(kText));
  EXPECT_EQ(tokenized({kText, "--json"}), expected);
  EXPECT_EQ(tokenized({"--json"}, kText), expected);
  EXPECT_EQ(tokenized({"--json", "--file", folder.write("text", kText)}), expected);
  EXPECT_EQ(tokenized({"--json", "-f", "-"}, kText), expected);
}

TEST_F(Tokenize, BeginsAsPromptsDoUnlessToldNotTo) {
  EXPECT_EQ(tokenized({"import os", "--json"}), object_of(vocabulary_.encode("import os")));
  EXPECT_EQ(vocabulary_.encode("").size(), 1u) << "this model wants a token before a text";
  EXPECT_EQ(tokenized({"", "--json"}), object_of(vocabulary_.encode("")));
  EXPECT_EQ(tokenized({"", "--json", "--no-bos"}), "{\"tokens\":[]}\n");
  EXPECT_EQ(tokenized({"import os", "--json", "--no-bos"}),
            object_of(vocabulary_.encode("import os", {.add_bos = false})));
}

TEST_F(Tokenize, RecognizesSpecialTokensOnRequest) {
  EXPECT_EQ(tokenized({"a</s>", "--json", "--special"}), object_of(vocabulary_.encode("a</s>")));
  EXPECT_EQ(tokenized({"a</s>", "--json"}), object_of(vocabulary_.encode("a</s>", {.special = false})));
  EXPECT_NE(tokenized({"a</s>", "--json"}), tokenized({"a</s>", "--json", "--special"}));
}

TEST_F(Tokenize, DecodesToTheBytesOfTheText) {
  const std::string ids = tokenized({kText, "--json"});
  EXPECT_EQ(tokenized({"--decode"}, ids), kText);
  EXPECT_EQ(tokenized({"--decode"}, json::parse(ids)["tokens"].dump()), kText);
  EXPECT_EQ(tokenized({"--decode", json::parse(ids)["tokens"].dump()}), kText);
  EXPECT_EQ(tokenized({"--decode", "[]"}), "");
  // Half of a character passes through as it is.
  const int32_t byte = vocabulary_.encode("\u2fa1", {.add_bos = false}).back();
  EXPECT_EQ(tokenized({"--decode", json(std::vector{byte}).dump()}), vocabulary_.token_text(byte));
  EXPECT_EQ(tokenized({"--decode", "--special"}, tokenized({"a</s>b", "--special", "--json"})), "<s>a</s>b");
  EXPECT_EQ(tokenized({"--decode"}, tokenized({"a</s>b", "--special", "--json"})), "ab");
}

TEST_F(Tokenize, ShowsPeopleIdsPiecesAndBytes) {
  const std::vector<std::string> lines = lines_of(tokenized({"import os\n\u2fa1"}));
  const std::vector<int32_t> tokens = vocabulary_.encode("import os\n\u2fa1");
  ASSERT_EQ(lines.size(), tokens.size() + 1);
  EXPECT_THAT(lines[0], HasSubstr("1  <s>"));
  for (size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_THAT(lines[i], HasSubstr(std::to_string(tokens[i]) + "  " + vocabulary_.piece(tokens[i])));
  }
  EXPECT_THAT(lines[1], HasSubstr("\"import\""));
  EXPECT_THAT(lines[tokens.size() - 1], HasSubstr("\"\\xa1\""));
  EXPECT_EQ(lines.back(), std::to_string(tokens.size()) + " tokens, 13 bytes of text");
}

TEST_F(Tokenize, ReadsNoWeights) {
  // Weights that loading would complain of: one of them is no number.
  const test::TemporaryFolder folder;
  test::TinyModelOptions options;
  options.vocab_size = 4096;
  options.nan_weight = true;
  const fs::path model = folder.path() / "model";
  test::write_tiny_llama(model, options);
  for (const char* name : {"tokenizer.model", "tokenizer_config.json"}) {
    fs::copy(test::default_model() / name, model / name);
  }
  const RunResult result = run_program({"tokenize", model, "import os", "--json"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out, object_of(ModelVocabulary::load(test::default_model()).encode("import os")));
}

TEST_F(Tokenize, RefusesBadInputInOneLine) {
  const std::string model = test::draft_model();
  const test::TemporaryFolder folder;
  expect_refused({"tokenize", model, "a\xff"}, 1, {"the argument is not valid UTF-8 at byte 1"});
  expect_refused({"tokenize", model, "--file", folder.write("latin", "caf\xe9")}, 1,
                 {"latin is not valid UTF-8 at byte 3"});
  expect_refused({"tokenize", model, "--file", folder.path() / "absent"}, 1, {"absent"});
  expect_refused({"tokenize", folder.path() / "absent", "x"}, 1, {"absent does not exist"});
  test::write_tiny_llama(folder.path() / "mute");
  expect_refused({"tokenize", folder.path() / "mute", "x"}, 1, {"mute has no tokenizer.model"});
  expect_refused({"tokenize", model, "--decode", "x"}, 1, {"the argument is not valid JSON"});
  expect_refused({"tokenize", model, "--decode", ""}, 1, {"the argument is empty"});
  expect_refused({"tokenize", model, "--decode", "5"}, 1, {"the argument should hold a JSON list"});
  expect_refused({"tokenize", model, "--decode", "[1.5]"}, 1, {"entry 0 of the list", "1.5"});
  expect_refused({"tokenize", model, "--decode", "[5, 4096]"}, 1, {"token 4096", "4096 tokens"});
  expect_refused({"tokenize", model, "--decode", "[-1]"}, 1, {"token -1"});
  expect_refused({"tokenize", model, "--decode", "[5]", "--json"}, 2, {"leave out --json"});
  expect_refused({"tokenize", model, "--decode", "[5]", "--no-bos"}, 2, {"--no-bos"});
  expect_refused({"tokenize", model, "x", "--file", "y"}, 2, {"--file"});
  expect_refused({"tokenize", model, "x", "y"}, 2, {"y"});
  expect_refused({"tokenize", model, "--file", ""}, 2, {"--file"});
  expect_refused({"tokenize", ""}, 2, {"MODEL"});
  expect_refused({"tokenize"}, 2, {"MODEL is required"});
}

TEST_F(Tokenize, HelpSaysWhenATextBeginsWithAToken) {
  const RunResult result = run_program({"tokenize", "--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("--no-bos"));
  EXPECT_THAT(result.out, HasSubstr("which comes first if it does in prompts"));
}

}  // namespace
}  // namespace tokenize_test
}  // namespace verbatim
