#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "support/run_program.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"
#include "verbatim/verbatim.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::expect_refused;
using test::lines_of;
using test::run_program;
using test::RunResult;
using ::testing::HasSubstr;

const std::vector<int32_t> kTokens = {1, 366, 459, 1000, 7, 4095};

std::vector<std::string> logits_of(const fs::path& model, const std::string& file,
                                   std::vector<std::string> more) {
  more.insert(more.begin(), {"eval", "logits", model, "--tokens", file});
  return more;
}

std::string printed(const fs::path& model, const std::string& input, std::vector<std::string> more) {
  test::RunOptions options;
  options.input = input;
  const RunResult result = run_program(logits_of(model, "-", std::move(more)), options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return result.out;
}

/// What the library says, as the object should hold it.
void expect_logits(const json& object, const std::vector<std::vector<TokenLogit>>& expected) {
  ASSERT_EQ(object.size(), 1u);
  ASSERT_EQ(object["positions"].size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const json& position = object["positions"][i];
    ASSERT_EQ(position.size(), 2u);
    ASSERT_EQ(position["tokens"].size(), expected[i].size());
    ASSERT_EQ(position["logits"].size(), expected[i].size());
    for (size_t t = 0; t < expected[i].size(); ++t) {
      EXPECT_EQ(position["tokens"][t], expected[i][t].token);
      EXPECT_TRUE(position["logits"][t].is_number_float());
      EXPECT_EQ(position["logits"][t].get<float>(), expected[i][t].logit);
    }
  }
}

TEST(EvalLogits, PrintsTheLibrarysNumbersBitForBit) {
  const Model model = Model::load(test::draft_model(), {.threads = 1});
  const std::string list = json(kTokens).dump();
  const test::TemporaryFolder folder;
  const RunResult result =
      run_program(logits_of(test::draft_model(), folder.write("ids.json", list + "\n"), {"--json"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(lines_of(result.out).size(), 1u);
  EXPECT_TRUE(result.out.starts_with("{\"positions\":[{\"tokens\":[")) << result.out.substr(0, 80);
  expect_logits(json::parse(result.out), top_logits(model, kTokens));
  const std::string most = printed(test::draft_model(), list, {"--json", "--top", "100000"});
  expect_logits(json::parse(most), top_logits(model, kTokens, {.top = 100000}));
}

TEST(EvalLogits, AreTheSameForEveryChunkAndNumberOfThreads) {
  const std::string list = json(kTokens).dump();
  const std::string expected = printed(test::draft_model(), list, {"--json"});
  for (const char* chunk : {"1", "4"}) {
    for (const char* threads : {"1", "2"}) {
      EXPECT_EQ(
          printed(test::draft_model(), list, {"--json", "--prefill-chunk", chunk, "--threads", threads}),
          expected);
    }
  }
}

TEST(EvalLogits, AreThoseOfTheReadingAndTheCacheThatAreNamed) {
  const std::string list = json(kTokens).dump();
  const std::string full = printed(test::draft_model(), list, {"--json"});
  EXPECT_EQ(printed(test::draft_model(), list, {"--json", "--reading", "mxbf16-full"}), full);
  EXPECT_NE(printed(test::draft_model(), list, {"--json", "--reading", "mxfp4-w4a8"}), full);
  EXPECT_NE(printed(test::draft_model(), list, {"--json", "--formats", "f32"}), full);
  EXPECT_NE(printed(test::draft_model(), list, {"--json", "--cache", "int8"}), full);
}

TEST(EvalLogits, ShowPeopleTheTokensTheyAreAbout) {
  const std::string out = printed(test::draft_model(), "[1, 366]", {"--top", "2"});
  const std::vector<std::string> lines = lines_of(out);
  ASSERT_EQ(lines.size(), 6u) << out;
  EXPECT_THAT(lines[0], HasSubstr("position      0        1  <s>"));
  EXPECT_THAT(lines[3], HasSubstr("position      1      366  "));
  const test::TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model");
  EXPECT_EQ(lines_of(printed(folder.path() / "model", "[1, 2]", {"--top", "3"})).size(), 8u)
      << "of a model without a vocabulary";
}

TEST(EvalLogits, TakeWhatTokenizePrints) {
  const RunResult ids = run_program({"tokenize", test::draft_model(), "def add(a, b):", "--json"});
  EXPECT_EQ(printed(test::draft_model(), ids.out, {"--json"}),
            printed(test::draft_model(), json::parse(ids.out)["tokens"].dump(), {"--json"}));
}

TEST(EvalLogits, RefuseBadInputInOneLine) {
  const fs::path model = test::draft_model();
  const test::TemporaryFolder folder;
  const auto refused = [&](const std::string& text, const std::vector<std::string>& parts) {
    expect_refused(logits_of(model, folder.write("ids.json", text), {}), 1, parts);
  };
  refused("", {"ids.json is empty"});
  refused("[]", {"ids.json holds an empty list"});
  refused("{\"tokens\":[]}", {"ids.json holds an empty list"});
  for (const char* text : {"5", "1, 2", "\"1, 2\"", "null", "true", "{}", "{\"ids\":[1]}", "{\"tokens\":5}",
                           "{\"tokens\":{\"tokens\":[1]}}", "{\"tokens\":[1],\"more\":[2]}",
                           "{\"tokens\":[1],\"tokens\":[2]}"}) {
    SCOPED_TRACE(text);
    refused(text, {"ids.json should hold a JSON list of token ids"});
  }
  for (const char* value : {"1.5", "1.0", "1e3", "99999999999", "-99999999999", "99999999999999999999999",
                            "1e999", "\"7\"", "null", "true"}) {
    SCOPED_TRACE(value);
    refused(std::string("[1, ") + value + "]", {"ids.json: entry 1 of the list", value, "whole number"});
  }
  refused("[1, [2]]", {"entry 1", "a list"});
  refused("[{\"tokens\":[1]}]", {"entry 0", "an object"});
  refused(std::string(1000000, '['), {"entry 0"});
  refused("[" + std::string(1000000, '9') + "]", {"entry 0"});
  for (const char* text : {"[1, 2", "[1,, 2]", "[1] 2", "[0x10]", "[NaN]", "[1, \xff]", "[\"\n\"]"}) {
    SCOPED_TRACE(text);
    refused(text, {"ids.json is not valid JSON: the mistake is at byte"});
  }
  refused("[1, 4096]", {"token 4096", "the vocabulary of 4096 tokens"});
  refused("[1, -1]", {"token -1", "the vocabulary of 4096 tokens"});
  refused(json(std::vector<int32_t>(100000, 5)).dump(), {"100000 tokens", "the model's context"});
  const fs::path ids = folder.write("ids.json", "[1, 2]");
  expect_refused(logits_of(model, folder.path() / "absent.json", {}), 1, {"absent.json"});
  expect_refused(logits_of(model, folder.path(), {}), 1, {"is a folder"});
  expect_refused(logits_of(folder.path() / "absent", ids, {}), 1, {"absent does not exist"});
  expect_refused(logits_of(model, ids, {"--reading", "loud"}), 1, {"--reading: unknown reading \"loud\""});
  expect_refused(logits_of(model, ids, {"--formats", "loud"}), 1, {"unknown format \"loud\""});
  expect_refused(logits_of(model, ids, {"--formats", "bf16", "--reading", "squeeze3"}), 2, {"squeeze3"});
  expect_refused(logits_of(model, ids, {"--cache", "loud"}), 2, {"--cache"});
  for (const char* option : {"--top", "--prefill-chunk", "--threads"}) {
    for (const char* value : {"0", "-1", "1.5", "99999999999999999999"}) {
      expect_refused(logits_of(model, ids, {option, value}), 2, {option});
    }
  }
  expect_refused({"eval", "logits", model}, 2, {"--tokens is required"});
}

TEST(EvalLogits, OfAModelThatGivesNoNumbersEndInAnError) {
  const test::TemporaryFolder folder;
  test::TinyModelOptions options;
  test::write_tiny_llama(folder.path() / "model", options);
  std::vector<test::NamedTensor> tensors = test::tiny_tensors(options);
  for (test::NamedTensor& tensor : tensors) {
    if (tensor.name == "model.norm.weight") {
      tensor.values.front() = std::numeric_limits<float>::quiet_NaN();
    }
  }
  folder.write("model/model.safetensors", test::safetensors_file(tensors, DType::kBF16));
  const RunResult result =
      run_program(logits_of(folder.path() / "model", folder.write("ids.json", "[1, 2]"), {"--json"}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  const std::vector<std::string> lines = lines_of(result.err);
  ASSERT_EQ(lines.size(), 2u) << result.err;
  EXPECT_THAT(lines[0], HasSubstr("warning: "));
  EXPECT_THAT(lines[1], HasSubstr("no usable logit at position 0"));
}

TEST(PublicEvalLogits, AgreeWithAReferenceInDoublePrecision) {
  NEEDS_PUBLIC_DATA();
  const fs::path family = test::public_data() / "families" / "qwen2";
  if (!fs::exists(family)) GTEST_SKIP() << family << " is absent";
  const json expected = json::parse(test::read_file(family / "expected.json"));
  for (const char* form : {"hf", "model.gguf"}) {
    for (const json& sequence : expected["sequences"]) {
      const json found = json::parse(
          printed(family / form, sequence["ids"].dump(), {"--json", "--formats", "f32", "--cache", "f32"}));
      const json& reference = sequence["reference_top8"];
      ASSERT_EQ(found["positions"].size(), reference.size());
      for (size_t i = 0; i < reference.size(); ++i) {
        std::map<int32_t, double> logits;
        for (size_t t = 0; t < 10; ++t) {
          const json& best = found["positions"][i];
          logits[best["tokens"][t].get<int32_t>()] = best["logits"][t].get<double>();
        }
        for (const json& best : reference[i]) {
          const auto token = best[0].get<int32_t>();
          ASSERT_TRUE(logits.contains(token)) << token << " at position " << i << " of " << form;
          EXPECT_NEAR(logits[token], best[1].get<double>(), 2e-3) << "at position " << i << " of " << form;
        }
      }
    }
  }
}

TEST(EvalLogits, HelpHasExamples) {
  const RunResult result = run_program({"eval", "logits", "--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, HasSubstr("\n  verbatim eval logits"));
  for (const std::string& line : lines_of(result.out)) EXPECT_LE(line.size(), 120u) << line;
}

}  // namespace
}  // namespace verbatim
