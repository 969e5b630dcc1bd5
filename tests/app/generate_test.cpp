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
using ::testing::Not;

constexpr const char* kPrompt = "def fibonacci(n):\n";

class Generate : public ::testing::Test {
 protected:
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

TEST_F(Generate, WithoutARecipePlansWithWhateverTheChosenFormatsServe) {
  const auto drafts_of_self = [&](const std::string& formats) {
    const json object = generate_json({"-p", kPrompt, "--formats", formats});
    EXPECT_EQ(object["recipe"], "auto");
    bool self = false;
    for (const json& plan : object["plans"]) self = self || plan["name"] == "self";
    return self;
  };
  EXPECT_FALSE(drafts_of_self("full"));
  EXPECT_TRUE(drafts_of_self("mxbf16"));
  EXPECT_TRUE(drafts_of_self("full,mxfp4"));
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
  const json object = generate_json({"-p", kPrompt, "--seed", "7", "--recipe", "ml-specqd"});
  for (const char* field : {"text",
                            "tokens",
                            "prompt_tokens",
                            "generated_tokens",
                            "recipe",
                            "lossless",
                            "seconds",
                            "tokens_per_second",
                            "drafted",
                            "accepted",
                            "acceptance_rate",
                            "mean_accepted_length",
                            "target_passes",
                            "draft_passes",
                            "seconds_draft",
                            "seconds_verify",
                            "seconds_sampling",
                            "seconds_planning",
                            "seconds_overhead",
                            "fallbacks",
                            "rollbacks",
                            "levels",
                            "depths",
                            "lengths",
                            "expected_seconds_draft",
                            "expected_seconds_verify",
                            "table_seconds_draft",
                            "table_seconds_verify",
                            "seconds_draft_passes",
                            "planning_percent",
                            "guarantee",
                            "peak_rss_bytes",
                            "finish_reason",
                            "seed"}) {
    EXPECT_TRUE(object.contains(field)) << field;
  }
  for (const char* field : {"load", "prefill", "decode"}) EXPECT_GE(object["seconds"][field], 0.0) << field;
  EXPECT_EQ(object["recipe"], "ml-specqd");
  EXPECT_EQ(object["lossless"], true);
  EXPECT_EQ(object["guarantee"], "bytes");
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

TEST_F(Generate, JsonAccountsForEveryStepDraftAndSecond) {
  const test::TemporaryFolder folder;
  const std::string two_levels = folder.write("two-levels.toml",
                                              R"(name = "two-levels"
summary = "s"
source = "s"
[drafter]
kind = "self"
reading = "mxfp4-w4a8"
stop = { length = 6 }
[drafter.drafter]
kind = "self"
reading = "full"
layers = 2
stop = { length = 2 }
)");
  const json object = generate_json({"-p", kPrompt, "--recipe", two_levels, "--temperature", "0.9"});
  const auto sum = [&](const json& list, const char* field) {
    int64_t total = 0;
    for (const json& entry : list) total += entry[field].get<int64_t>();
    return total;
  };
  int64_t steps = 0;
  int64_t kept = 0;
  for (size_t length = 0; length < object["lengths"].size(); ++length) {
    const auto times = object["lengths"][length].get<int64_t>();
    steps += times;
    kept += times * static_cast<int64_t>(length);
  }
  EXPECT_EQ(steps, object["target_passes"]);
  EXPECT_EQ(kept, object["accepted"]);
  EXPECT_EQ(sum(object["depths"], "drafted"), object["drafted"]);
  EXPECT_EQ(sum(object["depths"], "accepted"), object["accepted"]);
  ASSERT_EQ(object["levels"].size(), 2u);
  EXPECT_EQ(object["levels"][0]["drafts"], "mxfp4-w4a8");
  EXPECT_EQ(object["levels"][1]["drafts"], "the first 2 layers in full");
  EXPECT_EQ(object["levels"][0]["drafted"], object["drafted"]);
  EXPECT_EQ(object["levels"][0]["accepted"], object["accepted"]);
  EXPECT_EQ(sum(object["levels"], "passes"), object["draft_passes"]);
  EXPECT_GT(object["levels"][1]["drafted"], 0);
  EXPECT_LE(object["levels"][1]["accepted"], object["levels"][1]["drafted"]);
  EXPECT_LE(object["levels"][1]["seconds"], object["levels"][0]["seconds"]);
  EXPECT_LE(object["rollbacks"], object["target_passes"]);
  double seconds = 0;
  for (const char* part : {"draft", "verify", "sampling", "planning", "overhead"}) {
    const auto spent = object[std::string("seconds_") + part].get<double>();
    EXPECT_GE(spent, 0.0) << part;
    seconds += spent;
  }
  EXPECT_NEAR(seconds, object["seconds"]["decode"], 1e-6);
}

TEST_F(Generate, StatsAreTablesOnStandardErrorAlone) {
  const RunResult quiet = generate({"-p", kPrompt, "-n", "12", "--recipe", "ml-specqd"});
  const RunResult result = generate({"-p", kPrompt, "-n", "12", "--recipe", "ml-specqd", "--stats"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, quiet.out);
  for (const char* part :
       {"steps of decoding with ml-specqd", "\n  draft ", "\n  verify ", "\n  sampling ", "\n  planning ",
        "\n  overhead ", "\n  depth ", "\n  kept ", "\n  level ", "  mxfp4-w4a8\n", "####"}) {
    EXPECT_THAT(result.err, HasSubstr(part));
  }
  for (const std::string& line : lines_of(result.err)) {
    EXPECT_FALSE(line.ends_with(' ')) << '"' << line << '"';
  }
  const RunResult planned = generate({"-p", kPrompt, "-n", "12", "--recipe", "auto", "--stats"});
  for (const char* part : {"\n  plan ", "\nexpected costs against those that came: draft ",
                           "\nmeasured table against the same passes: draft ", "\nplanning took "}) {
    EXPECT_THAT(planned.err, HasSubstr(part));
    EXPECT_THAT(result.err, Not(HasSubstr(part)));
  }
  const RunResult plain = generate({"-p", kPrompt, "-n", "3", "--recipe", "plain", "--stats"});
  EXPECT_THAT(plain.err, HasSubstr("2 steps of decoding with plain"));
  EXPECT_THAT(plain.err, Not(HasSubstr("depth")));
  const RunResult nothing = generate({"-p", kPrompt, "-n", "1", "--stats"});
  EXPECT_EQ(nothing.exit_code, 0);
  EXPECT_THAT(nothing.err, HasSubstr("no statistics"));
}

TEST_F(Generate, LossyRecipesSaySo) {
  const std::string draft_model = test::default_model();
  const std::vector<std::string> bild = {"-p",   kPrompt,         "-n",       "8", "--recipe",
                                         "bild", "--draft-model", draft_model};
  const RunResult result = generate(bild);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  ASSERT_EQ(lines_of(result.err).size(), 2u) << result.err;
  EXPECT_THAT(lines_of(result.err)[0], HasSubstr("the recipe bild is not lossless"));
  std::vector<std::string> with_json = bild;
  with_json.emplace_back("--json");
  const RunResult in_json = generate(with_json);
  EXPECT_EQ(lines_of(in_json.err).size(), 1u) << in_json.err;
  const json object = json::parse(in_json.out);
  EXPECT_EQ(object["lossless"], false);
  EXPECT_EQ(object["guarantee"], "none");
}

TEST_F(Generate, TakesADraftModelThatTheRecipeUsesAndNoOther) {
  const std::string model = test::default_model();
  const json plain = generate_json({"-p", kPrompt, "--recipe", "plain"});
  const json drafted = generate_json({"-p", kPrompt, "--recipe", "draft-model", "--draft-model", model});
  EXPECT_EQ(drafted["text"], plain["text"]);
  EXPECT_EQ(drafted["rollbacks"], 0) << "a model agrees with itself";
  test::expect_refused({"generate", model, "-p", kPrompt, "--recipe", "draft-model"}, 2,
                       {"draft-model", "--draft-model"});
  test::expect_refused({"generate", model, "-p", kPrompt, "--recipe", "ml-specqd", "--draft-model", model}, 2,
                       {"ml-specqd drafts with no other model"});
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
  const auto with = [](const char* recipe, size_t tokens) -> std::vector<std::string> {
    return {"-p", kPrompt, "-n", std::to_string(tokens), "--ignore-eos", "--recipe", recipe};
  };
  const RunResult whole = generate(with("plain", 1000));
  for (const char* recipe : {"plain", "ml-specqd", "auto"}) {
    SCOPED_TRACE(recipe);
    RunResult result = generate(with(recipe, 1000), options);
    // On a busy machine the interrupt may come after the end.
    for (int again = 0; result.exit_code == 0 && again < 5; ++again) {
      result = generate(with(recipe, 1000), options);
    }
    EXPECT_EQ(result.exit_code, 130);
    EXPECT_LT(result.seconds_after_interrupt, 20.0);
    EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
    EXPECT_THAT(result.err, HasSubstr("cancelled"));
    EXPECT_FALSE(result.out.empty());
    EXPECT_TRUE(whole.out.starts_with(result.out)) << result.out << "\nof\n" << whole.out;
  }
}

TEST_F(Generate, MakesNothingOfNoTokens) {
  const RunResult result = generate({"-p", kPrompt, "-n", "0"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "");
}

}  // namespace
}  // namespace verbatim
