#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/run_program.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using nlohmann::json;
using test::lines_of;
using test::run_program;
using test::RunOptions;
using test::RunResult;
using ::testing::HasSubstr;

constexpr const char* kPrompt = "def fibonacci(n):\n";

class Generate : public ::testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT(test::default_model()); }

  RunResult generate(std::vector<std::string> more, const RunOptions& options = {}) {
    more.insert(more.begin(), {"generate", test::default_model().string()});
    return run_program(more, options);
  }

  json generate_json(std::vector<std::string> more) {
    more.insert(more.end(), {"--json", "-n", "12"});
    const RunResult result = generate(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return json::parse(result.out);
  }
};

TEST_F(Generate, WithoutARecipeTakesOneThatTheChosenFormatsServe) {
  const auto recipe_for = [&](const std::string& formats) {
    return generate_json({"-p", kPrompt, "--formats", formats})["recipe"];
  };
  EXPECT_EQ(recipe_for("full"), "plain");
  EXPECT_EQ(recipe_for("mxbf16"), "plain");
  EXPECT_EQ(recipe_for("full,mxfp4"), "ml-specqd");
  const RunResult result = generate({"-p", kPrompt, "--formats", "full", "--recipe", "ml-specqd"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("mxfp4"));
}

TEST_F(Generate, TakesTheModelBehindAListOfFormats) {
  const RunResult result = run_program(
      {"generate", "--formats", "mxbf16", test::default_model().string(), "-p", kPrompt, "-n", "1"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST_F(Generate, JsonTellsEverythingAndTheNumbersAgree) {
  const json object = generate_json({"-p", kPrompt, "--seed", "7"});
  for (const char* field : {"text", "tokens", "prompt_tokens", "generated_tokens", "recipe", "lossless",
                            "seconds", "tokens_per_second", "drafted", "accepted", "acceptance_rate",
                            "mean_accepted_length", "target_passes", "draft_passes", "seconds_draft",
                            "seconds_verify", "peak_rss_bytes", "finish_reason", "seed"}) {
    EXPECT_TRUE(object.contains(field)) << field;
  }
  for (const char* field : {"load", "prefill", "decode"}) EXPECT_GE(object["seconds"][field], 0.0) << field;
  EXPECT_EQ(object["recipe"], "ml-specqd");
  EXPECT_EQ(object["lossless"], true);
  EXPECT_EQ(object["seed"], 7);
  EXPECT_EQ(object["finish_reason"], "length");
  EXPECT_EQ(object["generated_tokens"], 12);
  EXPECT_EQ(object["tokens"].size(), 12u);
  EXPECT_GT(object["prompt_tokens"], 1);
  const auto drafted = object["drafted"].get<double>();
  const auto accepted = object["accepted"].get<double>();
  EXPECT_LE(accepted, drafted);
  EXPECT_DOUBLE_EQ(object["acceptance_rate"], drafted > 0 ? accepted / drafted : 0.0);
  EXPECT_EQ(object["draft_passes"], object["drafted"]);
  // The first token comes from the prompt; every pass yields one more than it accepts.
  EXPECT_EQ(object["target_passes"].get<int64_t>() + object["accepted"].get<int64_t>(), 11);
  EXPECT_LE(object["seconds_draft"].get<double>() + object["seconds_verify"].get<double>(),
            object["seconds"]["decode"].get<double>() + 1e-6);
  EXPECT_GT(object["peak_rss_bytes"], 1 << 20);
}

TEST_F(Generate, SpeculationAndStreamingLeaveTheTextAsItIs) {
  for (const std::vector<std::string>& sampling :
       {std::vector<std::string>{}, std::vector<std::string>{"--temperature", "0.8", "--seed", "3"}}) {
    const auto with = [&](std::vector<std::string> more) {
      more.insert(more.end(), sampling.begin(), sampling.end());
      return more;
    };
    const json plain = generate_json(with({"-p", kPrompt, "--recipe", "plain"}));
    const json speculative = generate_json(with({"-p", kPrompt, "--recipe", "ml-specqd"}));
    EXPECT_EQ(plain["tokens"], speculative["tokens"]);
    EXPECT_EQ(plain["text"], speculative["text"]);
    EXPECT_EQ(plain["drafted"], 0);
    EXPECT_EQ(plain["target_passes"], 11);
    const RunResult streamed = generate(with({"-p", kPrompt, "-n", "12"}));
    EXPECT_EQ(streamed.out, plain["text"]);
    EXPECT_EQ(lines_of(streamed.err).size(), 1u) << streamed.err;
    EXPECT_THAT(streamed.err, HasSubstr("12 tokens at"));
  }
}

TEST_F(Generate, ReadsThePromptFromAFileOrStandardInput) {
  const test::TemporaryFolder folder;
  const std::string expected = generate({"-p", kPrompt, "-n", "6"}).out;
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(generate({"-f", folder.write("prompt.txt", kPrompt), "-n", "6"}).out, expected);
  RunOptions options;
  options.input = kPrompt;
  EXPECT_EQ(generate({"-f", "-", "-n", "6"}, options).out, expected);
  EXPECT_EQ(generate({"-f", "/dev/stdin", "-n", "6"}, options).out, expected);
}

TEST_F(Generate, EndsBeforeAStopText) {
  const std::string whole = generate_json({"-p", kPrompt})["text"];
  ASSERT_GT(whole.size(), 8u);
  const std::string stop = whole.substr(5, 3);
  // The model comes last: a stop text must not swallow it.
  const RunResult result = run_program({"generate", "-p", kPrompt, "-n", "12", "--stop", stop, "--stop",
                                        "never to be seen", test::default_model().string()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, whole.substr(0, whole.find(stop)));
  EXPECT_THAT(result.err, HasSubstr("stopped by stop"));
}

TEST_F(Generate, CtrlCEndsItPromptlyAndCleanly) {
  RunOptions options;
  options.interrupt_on_output = true;
  const RunResult result =
      generate({"-p", kPrompt, "-n", "1000", "--ignore-eos", "--recipe", "plain"}, options);
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_LT(result.seconds_after_interrupt, 20.0);
  EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
  EXPECT_THAT(result.err, HasSubstr("cancelled"));
  const RunResult whole = generate({"-p", kPrompt, "-n", "2", "--recipe", "plain"});
  // It may have ended after the first token or some later one.
  EXPECT_FALSE(result.out.empty());
  EXPECT_TRUE(result.out.starts_with(whole.out) || whole.out.starts_with(result.out)) << result.out;
}

TEST_F(Generate, MakesNothingOfNoTokens) {
  const RunResult result = generate({"-p", kPrompt, "-n", "0"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "");
}

}  // namespace
}  // namespace verbatim
