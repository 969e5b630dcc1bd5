#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "support/run_program.h"
#include "support/test_data.h"
#include "support/trained_gguf.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::expect_refused;
using test::run_program;
using test::RunResult;
using ::testing::AllOf;
using ::testing::HasSubstr;

const char* const kPrompts =
    R"({"id": 1, "prompt": "def add(a, b):\n    "}
{"question": "What is 2 + 3?", "answer": "5"}

{"question_id": 7, "turns": ["import os\n", "import sys\n"]}
)";

std::string recipe_text(const std::string& name, const std::string& reading, const std::string& more = "") {
  return "name = \"" + name +
         "\"\nsummary = \"x\"\nsource = \"x\"\n[drafter]\nkind = \"self\"\nreading = \"" + reading +
         "\"\n[drafter.stop]\nlength = 4\n" + more;
}

std::vector<std::string> bench(const fs::path& prompts, const std::string& recipes,
                               std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"bench", "decode", test::default_model(), "--prompts", prompts, "--recipes",
                             recipes, "--threads", "2"});
  return more;
}

json bench_json(const std::vector<std::string>& arguments) {
  std::vector<std::string> all = arguments;
  all.emplace_back("--json");
  const RunResult result = run_program(all);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return json::parse(result.out);
}

TEST(BenchDecode, MeasuresRecipesBesidePlain) {
  const test::TemporaryFolder folder;
  const fs::path prompts = folder.write("some.jsonl", kPrompts);
  const fs::path more = folder.write("more.jsonl", R"({"prompt": "class Stack:\n"})");
  const json object = bench_json(bench(prompts.string() + "," + more.string(), "ml-specqd", {"-n", "12"}));
  EXPECT_EQ(object["model"], test::default_model().string());
  EXPECT_EQ(object["weights"], "trained");
  EXPECT_EQ(object["threads"], 2);
  EXPECT_EQ(object["temperature"], 0.0);
  EXPECT_EQ(object["tokens"], 12);
  EXPECT_FALSE(object["cpu"].get<std::string>().empty());
  EXPECT_FALSE(object["isa"].get<std::string>().empty());
  ASSERT_EQ(object["results"].size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const json& result = object["results"][i];
    const bool plain = i % 2 == 0;
    SCOPED_TRACE(i);
    EXPECT_EQ(result["recipe"], plain ? "plain" : "ml-specqd");
    EXPECT_EQ(result["prompt_set"], i < 2 ? "some" : "more");
    EXPECT_EQ(result["prompts"], i < 2 ? 3 : 1);
    EXPECT_EQ(result["prompts_timed"], result["prompts"]);
    EXPECT_EQ(result["identical"], true);
    EXPECT_EQ(result["agreement"], 1.0);
    EXPECT_EQ(result["lossless"], true);
    EXPECT_EQ(result["guarantee"], "bytes");
    EXPECT_TRUE(result["perplexity"].is_null());
    EXPECT_GT(result["tokens_per_second"], 0.0);
    EXPECT_GT(result["speedup"], 0.0);
    EXPECT_GE(result["mean_accepted_length"], 1.0);
    EXPECT_GT(result["seconds"]["verify"], 0.0);
    EXPECT_GE(result["seconds"]["decode"], result["seconds"]["verify"]);
    EXPECT_EQ(result["generated_tokens"], object["results"][i - i % 2]["generated_tokens"]);
    EXPECT_EQ(result["drafted"] == 0, plain);
    if (plain) {
      EXPECT_EQ(result["speedup"], 1.0);
    }
  }
  EXPECT_GT(object["results"][1]["acceptance_rate"], 0.0);
}

TEST(BenchDecode, CountsTheWeightsThatEachRecipeNeeds) {
  const test::TemporaryFolder folder;
  const fs::path prompts = folder.write("some.jsonl", kPrompts);
  const fs::path nested = folder.write("nested.toml", recipe_text("in-one-store", "mxbf16-draft"));
  const fs::path other = folder.write("other.toml", recipe_text("int4-beside", "int4-w4a8"));
  const json object = bench_json(bench(prompts, "plain,ml-specqd," + nested.string() + "," + other.string(),
                                       {"-n", "6", "--limit", "1", "--ignore-eos"}));
  std::map<std::string, double> bytes;
  for (const json& result : object["results"]) {
    EXPECT_EQ(result["identical"], true) << result["recipe"];
    EXPECT_EQ(result["generated_tokens"], 6);
    bytes[result["recipe"]] = result["weight_bytes"];
  }
  ASSERT_EQ(bytes.size(), 4u);
  EXPECT_NEAR(bytes["ml-specqd"] / bytes["plain"], 1 + 4.25 / 16, 1e-6);
  EXPECT_GT(bytes["int4-beside"], bytes["plain"]);
  EXPECT_LT(bytes["in-one-store"], 0.9 * bytes["plain"]);  // verifies from the store that it drafts from
}

/// What `auto` and `plain` did beside each other on a model that is not a checkpoint in BF16.
void expect_planned(const fs::path& model, double bytes_to_plain) {
  SCOPED_TRACE(model);
  const test::TemporaryFolder folder;
  const fs::path prompts = folder.write("some.jsonl", R"({"prompt": "Once upon a time"})");
  const json results = bench_json({"bench", "decode", model, "--prompts", prompts, "--recipes", "auto", "-n",
                                   "40", "--ignore-eos", "--threads", "2"})["results"];
  ASSERT_EQ(results.size(), 2u);
  const json& plain = results[0];
  const json& planned = results[1];
  EXPECT_EQ(planned["recipe"], "auto");
  EXPECT_EQ(planned["identical"], true);
  EXPECT_EQ(planned["generated_tokens"], 40);
  EXPECT_NEAR(planned["weight_bytes"].get<double>() / plain["weight_bytes"].get<double>(), bytes_to_plain,
              1e-3);
  ASSERT_EQ(planned["levels"].size(), 2u);  // itself and n-grams
  // Whether it drafts for itself depends on the machine.
  const bool drafts = planned["levels"][0]["passes"] > 0;
  EXPECT_EQ(planned["table_seconds_draft"] > 0.0, drafts);
  EXPECT_EQ(planned["seconds_draft_passes"] > 0.0, drafts);
  for (const char* field : {"expected_seconds_draft", "expected_seconds_verify", "table_seconds_verify"}) {
    EXPECT_GT(planned[field], 0.0) << field;
    EXPECT_EQ(plain[field], 0.0) << field;
  }
  EXPECT_LE(planned["seconds_draft_passes"], planned["seconds"]["draft"]);
  EXPECT_NEAR(
      planned["planning_percent"],
      100.0 * planned["seconds"]["planning"].get<double>() / planned["seconds"]["decode"].get<double>(),
      1e-6);
}

TEST(BenchDecode, PlansWithCopiesInMxfp4WhereWeightsAreNotInBf16) {
  const auto model = test::draft_gguf();
  expect_planned(model, 1 + 4.25 / 32);
}

TEST(BenchDecode, PlansWithWhatAPackedFileHolds) {
  const auto model = test::draft_gguf();
  const test::TemporaryFolder folder;
  const fs::path packed = folder.path() / "both.vbt";
  ASSERT_EQ(run_program({"pack", model, "-o", packed, "--formats", "full,mxfp4"}).exit_code, 0);
  expect_planned(packed, 1 + 4.25 / 32);
}

TEST(BenchDecode, ScoresTheTextWhereARecipeMayChangeIt) {
  const test::TemporaryFolder folder;
  const fs::path prompts = folder.write("some.jsonl", kPrompts);
  const fs::path lossy = folder.write(
      "lossy.toml", recipe_text("lossy", "mxfp4-w4a8", "[acceptance]\nrule = \"bild\"\nrollback = 3\n"));
  const json object = bench_json(bench(prompts, lossy, {"-n", "8", "--limit", "2"}));
  ASSERT_EQ(object["results"].size(), 2u);
  for (const json& result : object["results"]) EXPECT_GT(result["perplexity"], 1.0);
  EXPECT_EQ(object["results"][0]["lossless"], true);
  EXPECT_EQ(object["results"][1]["lossless"], false);
  EXPECT_EQ(object["results"][1]["guarantee"], "none");
}

TEST(BenchDecode, SamplesTheSameTextWithAndWithoutDrafts) {
  const test::TemporaryFolder folder;
  const fs::path prompts = folder.write("some.jsonl", kPrompts);
  const json object = bench_json(
      bench(prompts, "ml-specqd", {"-n", "16", "--temperature", "0.8", "--top-p", "0.9", "--seed", "5"}));
  EXPECT_EQ(object["temperature"], 0.8);
  EXPECT_EQ(object["top_p"], 0.9);
  EXPECT_EQ(object["seed"], 5);
  EXPECT_EQ(object["results"][1]["identical"], true);
}

TEST(BenchDecode, CutsPromptsThatDoNotFit) {
  const test::TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "x = " + std::to_string(i) + "; ";
  const fs::path prompts =
      folder.write("long.jsonl", json{{"prompt", text}}.dump() + "\n" + R"({"prompt": "short"})");
  const json object = bench_json(bench(prompts, "plain", {"-n", "4", "--ignore-eos"}));
  EXPECT_EQ(object["results"][0]["prompts"], 2);
  EXPECT_EQ(object["results"][0]["prompts_cut"], 1);
  EXPECT_GE(object["results"][0]["prompt_tokens"], 1024 - 4);
  EXPECT_EQ(object["results"][0]["generated_tokens"], 8);
}

TEST(BenchDecode, PrintsATable) {
  const test::TemporaryFolder folder;
  const fs::path prompts = folder.write("some.jsonl", kPrompts);
  const RunResult result = run_program(bench(prompts, "ml-specqd", {"-n", "4", "--limit", "1"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, AllOf(HasSubstr("trained weights; temperature 0"), HasSubstr("some, 1 prompt\n"),
                                HasSubstr("\n  plain "), HasSubstr("\n  ml-specqd "), HasSubstr("speedup")));
}

TEST(BenchDecode, SaysWhatTheWeightsAre) {
  const test::TemporaryFolder folder;
  const fs::path prompts = folder.write("some.jsonl", kPrompts);
  const fs::path large = folder.path() / "large";
  const fs::path packed = folder.path() / "large.vbt";
  ASSERT_EQ(run_program({"inflate", test::default_model(), "-o", large, "--depth", "9"}).exit_code, 0);
  ASSERT_EQ(run_program({"pack", large, "-o", packed}).exit_code, 0);
  const auto weights = [&](const fs::path& model) {
    return bench_json({"bench", "decode", model, "--prompts", prompts, "--recipes", "plain", "-n", "2",
                       "--limit", "1"})["weights"];
  };
  EXPECT_EQ(weights(large), "inflated");
  EXPECT_EQ(weights(packed), "inflated");
  json config = json::parse(test::read_file(large / "config.json"));
  config["verbatim_random"] = true;
  std::ofstream(large / "config.json") << config.dump();
  EXPECT_EQ(weights(large), "random");
}

TEST(BenchDecode, RefusesMalformedPromptsByLine) {
  const test::TemporaryFolder folder;
  const auto refused = [&](const std::string& text, const std::string& line, const std::string& part) {
    SCOPED_TRACE(text);
    const fs::path prompts = folder.write("bad.jsonl", text);
    expect_refused(bench(prompts, "plain"), 1, {prompts.string() + line, part});
  };
  const std::string good = R"({"prompt": "x"})";
  refused("", "", "no prompts");
  refused(" \n\n", "", "no prompts");
  refused(good + "\n{\"prompt\": \"x\"", ":2:", "not valid JSON");
  refused(good + "\n\n[1]", ":3:", "object");
  refused("{\"prompt\": 3}", ":1:", "prompt should be");
  refused("{\"prompt\": \"\"}", ":1:", "empty");
  refused("{\"question\": \"\"}", ":1:", "empty");
  refused("{\"text\": \"x\"}", ":1:", "\"turns\"");
  refused("{\"turns\": []}", ":1:", "turns should be");
  refused("{\"turns\": \"x\"}", ":1:", "turns should be");
  refused("{\"turns\": [1]}", ":1:", "turns should be");
  refused("{\"prompt\": \"x\", \"prompt\": \"y\"}", ":1:", "twice");
  expect_refused(bench(folder.path() / "absent.jsonl", "plain"), 1, {"absent.jsonl"});
  // Lines beyond the limit are not read.
  const fs::path prompts = folder.write("half.jsonl", good + "\nnonsense");
  EXPECT_EQ(run_program(bench(prompts, "plain", {"--limit", "1", "-n", "2"})).exit_code, 0);
}

TEST(BenchDecode, RefusesWrongUsageInOneLine) {
  const test::TemporaryFolder folder;
  const fs::path prompts = folder.write("some.jsonl", kPrompts);
  const fs::path drafting = folder.write(
      "small.toml",
      "name = \"small\"\nsummary = \"x\"\nsource = \"x\"\n[drafter]\nkind = \"model\"\nreading = \"full\"\n");
  expect_refused({"bench", "decode", "m", "--prompts", prompts}, 2, {"--recipes is required"});
  expect_refused({"bench", "decode", "m", "--recipes", "plain"}, 2, {"--prompts is required"});
  expect_refused(bench(prompts, "plain", {"-n", "1"}), 2, {"1"});
  expect_refused(bench(prompts, "plain", {"-n", "1024"}), 2, {"1024", "no room"});
  expect_refused(bench(prompts, "plain", {"--limit", "0"}), 2, {"--limit"});
  expect_refused(bench(prompts, "fast"), 2, {"no recipe \"fast\""});
  expect_refused(bench(prompts, "ml-specqd,ml-specqd"), 2, {"two recipes are called ml-specqd"});
  expect_refused(bench(prompts, drafting), 2, {"small", "--draft-model"});
  expect_refused(bench(prompts.string() + "," + prompts.string(), "plain"), 2,
                 {"two prompt files are called some"});
}

}  // namespace
}  // namespace verbatim
