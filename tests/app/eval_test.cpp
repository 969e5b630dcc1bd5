#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "support/run_program.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::expect_refused;
using test::lines_of;
using test::run_program;
using test::RunResult;
using ::testing::HasSubstr;

const char* const kText = "def add(a, b):\n    return a + b\n\n\ndef twice(a):\n    return add(a, a)\n";

std::vector<std::string> eval(const fs::path& model, const fs::path& file, std::vector<std::string> more) {
  more.insert(more.begin(), {"eval", "perplexity", model, file});
  return more;
}

json eval_json(const fs::path& model, const fs::path& file, std::vector<std::string> more) {
  more.emplace_back("--json");
  const RunResult result = run_program(eval(model, file, std::move(more)));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return json::parse(result.out);
}

TEST(EvalPerplexity, PrintsOneObject) {
  const test::TemporaryFolder folder;
  const fs::path file = folder.write("text.py", kText);
  const json object = eval_json(test::default_model(), file, {"--window", "20", "--stride", "8"});
  EXPECT_EQ(object["reading"], "full");
  EXPECT_EQ(object["resolved_reading"], "bf16");
  EXPECT_EQ(object["bits_per_weight"], 16.0);
  EXPECT_EQ(object["window"], 20);
  EXPECT_EQ(object["stride"], 8);
  EXPECT_GT(object["windows"], 1);
  EXPECT_EQ(object["text_bytes"], std::string(kText).size());
  EXPECT_EQ(object["tokens"], object["text_tokens"]);
  EXPECT_NEAR(object["perplexity"].get<double>(), std::exp(object["mean_nll"].get<double>()), 1e-9);
  EXPECT_GT(object["standard_error"], 0.0);
  EXPECT_GT(object["bits_per_byte"], 0.0);
  EXPECT_FALSE(object.contains("agreement"));
}

TEST(EvalPerplexity, ComparesReadingsOfWhateverFormats) {
  const test::TemporaryFolder folder;
  const fs::path file = folder.write("text.py", kText);
  const json draft =
      eval_json(test::default_model(), file, {"--reading", "mxfp4-w4a8", "--compare-with", "full"});
  EXPECT_LT(draft["bits_per_weight"], 5.0);
  EXPECT_LT(draft["overlap"], 1.0);
  EXPECT_GT(draft["overlap"], 0.8);
  const json exact =
      eval_json(test::default_model(), file, {"--reading", "mxbf16-full", "--compare-with", "full"});
  EXPECT_EQ(exact["resolved_reading"], "mxbf16-full");
  EXPECT_EQ(exact["excess_nll"], 0.0);
  EXPECT_EQ(exact["agreement"], 1.0);
}

TEST(EvalPerplexity, SaysTheSameToPeople) {
  const test::TemporaryFolder folder;
  const RunResult result = run_program(eval(test::default_model(), folder.write("text.py", kText),
                                            {"--reading", "int4-w4a16", "--compare-with", "full"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(result.out.starts_with("perplexity ")) << result.out;
  EXPECT_THAT(result.out, HasSubstr("in 1 window of 1024"));
  EXPECT_THAT(result.out, HasSubstr("beside full: "));
}

TEST(EvalPerplexity, ComparesWithAnotherModel) {
  const test::TemporaryFolder folder;
  const fs::path file = folder.write("text.py", kText);
  const fs::path quantized = folder.path() / "w4";
  ASSERT_EQ(run_program({"quantize", test::default_model(), "-o", quantized}).exit_code, 0);
  const json apart =
      eval_json(quantized, file, {"--reading", "int4-w4a16", "--compare-model", test::default_model()});
  const json together =
      eval_json(test::default_model(), file, {"--reading", "int4-w4a16", "--compare-with", "full"});
  EXPECT_EQ(apart["compared_with"], "full");
  EXPECT_EQ(apart["compared_model"], test::default_model().string());
  for (const char* field : {"perplexity", "excess_nll", "excess_standard_error", "divergence", "agreement"}) {
    EXPECT_EQ(apart[field], together[field]) << field;
  }
  const RunResult said = run_program(
      eval(quantized, file, {"--reading", "int4-w4a16", "--compare-model", test::default_model()}));
  EXPECT_THAT(said.out, HasSubstr("beside full of " + test::default_model().string() + ": "));
}

TEST(EvalPerplexity, GivesWeightsTheValuesOfFormatsThatThereAreNot) {
  const test::TemporaryFolder folder;
  const fs::path file = folder.write("text.py", kText);
  const json two = eval_json(test::default_model(), file,
                             {"--reading", "f32", "--squeeze-to-bits", "2", "--squeeze-uniformly",
                              "--squeeze-group", "128", "--compare-model", test::default_model()});
  EXPECT_EQ(two["squeezed_to_bits"], 2);
  EXPECT_EQ(two["squeeze_group"], 128);
  EXPECT_EQ(two["squeezed_uniformly"], true);
  EXPECT_GT(two["divergence"], 0.05);
}

TEST(EvalPerplexity, ReadsStandardInput) {
  test::RunOptions options;
  options.input = kText;
  const RunResult result = run_program(eval(test::default_model(), "-", {}), options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("perplexity "));
}

TEST(EvalPerplexity, RefusesBadInputInOneLine) {
  const fs::path model = test::default_model();
  const test::TemporaryFolder folder;
  const fs::path text = folder.write("text.py", kText);
  expect_refused(eval(model, folder.write("empty.txt", ""), {}), 1, {"empty.txt is empty"});
  expect_refused(eval(model, folder.write("latin.txt", "caf\xe9"), {}), 1,
                 {"latin.txt is not valid UTF-8 at byte 3"});
  expect_refused(eval(model, folder.write("short.txt", "a"), {}), 1, {"too short: it has 1 token,"});
  expect_refused(eval(model, folder.path() / "absent.txt", {}), 1, {"absent.txt"});
  expect_refused(eval(folder.path() / "absent", text, {}), 1, {"absent does not exist"});
  expect_refused(eval(model, text, {"--window", "1025"}), 1, {"the model's context of 1024"});
  expect_refused(eval(model, text, {"--stride", "1024"}), 1, {"stride of 1024"});
  expect_refused(eval(model, text, {"--dense-only", "--outliers", "0.01"}), 2,
                 {"--dense-only", "--outliers"});
  expect_refused(eval(model, text, {"--dense-only", "--outliers-across", "model"}), 2,
                 {"--dense-only", "--outliers-across"});
  expect_refused(eval(model, text, {"--squeeze-group", "128"}), 2, {"--squeeze-group", "--squeeze-to-bits"});
  expect_refused(eval(model, text, {"--squeeze-to-bits", "3", "--round-to-bits", "3"}), 2, {"give one"});
  expect_refused(eval(model, text, {"--squeeze-to-bits", "3", "--outliers-across", "model"}), 2,
                 {"--outliers-across"});
  expect_refused(eval(model, text, {"--squeeze-to-bits", "5"}), 2, {"--squeeze-to-bits"});
  expect_refused(eval(model, text, {"--compare-model", folder.path() / "absent"}), 1,
                 {"absent does not exist"});
  expect_refused(eval(model, text, {"--compare-model", model, "--compare-with", "loud"}), 1,
                 {"--compare-with: unknown reading"});
  expect_refused(eval(model, text, {"--outliers-across", "layer"}), 2, {"\"layer\"", "matrix and model"});
  expect_refused(eval(model, text, {"--reading", "loud"}), 1, {"--reading: unknown reading \"loud\""});
  expect_refused(eval(model, text, {"--compare-with", "loud"}), 1, {"--compare-with: unknown reading"});
  expect_refused(eval(model, text, {"--formats", "loud"}), 1, {"unknown format \"loud\""});
  expect_refused(eval(model, text, {"--sensitivities", folder.path() / "none.safetensors"}), 1,
                 {"none.safetensors"});
  expect_refused(eval(model, text, {"--formats", "bf16", "--reading", "squeeze3"}), 2, {"squeeze3"});
  expect_refused(eval(model, text, {"--max-tokens", "0"}), 2, {"--max-tokens"});
  expect_refused({"eval"}, 2, {"a command is missing (`verbatim eval --help`"});
  expect_refused({"eval", "sing"}, 2, {"no command or option sing"});
}

TEST(EvalPerplexity, OfAModelThatGivesNoNumbersEndsInAnError) {
  const test::TemporaryFolder folder;
  test::TinyModelOptions options;
  options.vocab_size = 4096;
  const fs::path model = folder.path() / "model";
  test::write_tiny_llama(model, options);
  std::vector<test::NamedTensor> tensors = test::tiny_tensors(options);
  for (test::NamedTensor& tensor : tensors) {
    if (tensor.name == "model.norm.weight") {
      tensor.values.front() = std::numeric_limits<float>::quiet_NaN();
    }
  }
  folder.write("model/model.safetensors", test::safetensors_file(tensors, DType::kBF16));
  for (const char* name : {"tokenizer.model", "tokenizer_config.json"}) {
    fs::copy(test::default_model() / name, model / name);
  }
  const RunResult result = run_program(eval(model, folder.write("text.py", kText), {}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  const std::vector<std::string> lines = lines_of(result.err);
  ASSERT_EQ(lines.size(), 2u) << result.err;
  EXPECT_THAT(lines[0], HasSubstr("warning: "));
  EXPECT_THAT(lines[1], HasSubstr("no finite log probability"));
}

TEST(EvalPerplexity, HelpHasExamples) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"eval", "--help"}, {"eval", "perplexity", "--help"}}) {
    const RunResult result = run_program(command);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.err, "");
    EXPECT_THAT(result.out, HasSubstr("Example"));
    EXPECT_THAT(result.out, HasSubstr("\n  verbatim eval perplexity"));
    for (const std::string& line : lines_of(result.out)) EXPECT_LE(line.size(), 120u) << line;
  }
}

}  // namespace
}  // namespace verbatim
