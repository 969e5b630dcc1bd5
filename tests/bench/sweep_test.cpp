#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/run_bench.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::expect_bench_refuses;
using test::run_bench;
using test::RunResult;
using ::testing::HasSubstr;
using ::testing::Not;

const char* const kPrompts = "{\"prompt\": \"def add(a, b):\\n    \"}\n{\"prompt\": \"import os\\n\"}\n";

std::string recipe_text(const std::string& name, const std::string& more) {
  return "name = \"" + name +
         "\"\nsummary = \"x\"\nsource = \"x\"\n[drafter]\nkind = \"self\"\nreading = \"mxfp4-w4a8\"\n" + more;
}

std::vector<std::string> sweep(const fs::path& prompts, const std::string& recipe, const fs::path& folder,
                               std::vector<std::string> more) {
  more.insert(more.begin(), {"sweep", test::default_model(), "--prompts", prompts, "--recipe", recipe, "-o",
                             folder, "--threads", "2", "-n", "6"});
  return more;
}

std::vector<std::string> files_of(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// Every element that is opened is closed, in order, and what stands between is escaped.
void expect_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  size_t at = 0;
  while ((at = xml.find('<', at)) != std::string::npos) {
    const size_t end = xml.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = xml.substr(at + 1, end - at - 1);
    ASSERT_FALSE(tag.empty());
    const std::string name = tag.substr(0, tag.find(' '));
    if (tag.front() == '/') {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    EXPECT_EQ(count(tag, "\"") % 2, 0u) << tag;
    EXPECT_EQ(tag.find('<'), std::string::npos) << tag;
    at = end;
  }
  EXPECT_TRUE(open.empty());
  for (at = xml.find('&'); at != std::string::npos; at = xml.find('&', at + 1)) {
    EXPECT_LT(xml.find(';', at) - at, 6u) << xml.substr(at, 20);
  }
  EXPECT_THAT(xml, Not(HasSubstr("nan")));
  EXPECT_THAT(xml, Not(HasSubstr("inf ")));
}

TEST(BenchSweep, MeasuresEverySettingAndDrawsTheCurves) {
  const test::TemporaryFolder folder;
  const fs::path prompts = folder.write("a & b.jsonl", kPrompts);
  const fs::path figures = folder.path() / "figures";
  const RunResult result = run_bench(
      sweep(prompts, "ml-specqd", figures, {"--lengths", "4,1", "--thresholds", "0,0.2,0.6", "--json"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out, test::read_file(figures / "sweep.json"));
  const json object = json::parse(result.out);
  EXPECT_EQ(object["recipe"], "ml-specqd");
  EXPECT_EQ(object["prompt_set"], "a & b");
  EXPECT_EQ(object["weights"], "trained");
  EXPECT_EQ(object["plain"]["recipe"], "plain");
  ASSERT_EQ(object["results"].size(), 6u);
  std::vector<std::pair<int, double>> settings;
  for (const json& point : object["results"]) {
    settings.emplace_back(point["length"], point["threshold"]);
    EXPECT_EQ(point["recipe"], "ml-specqd");
    EXPECT_EQ(point["identical"], true);
    EXPECT_GT(point["speedup"], 0.0);
    EXPECT_FALSE(point.contains("rollback"));
    EXPECT_LE(point["mean_accepted_length"].get<double>(), point["length"].get<double>() + 1);
  }
  EXPECT_EQ(settings, (std::vector<std::pair<int, double>>{
                          {1, 0.0}, {1, 0.2}, {1, 0.6}, {4, 0.0}, {4, 0.2}, {4, 0.6}}));
  EXPECT_EQ(files_of(figures),
            (std::vector<std::string>{"acceptance-by-length.svg", "acceptance-by-threshold.svg",
                                      "speedup-by-length.svg", "speedup-by-threshold.svg", "sweep.json"}));
  for (const std::string name : object["figures"]) {
    SCOPED_TRACE(name);
    const std::string svg = test::read_file(figures / name);
    expect_well_formed(svg);
    EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"")) << svg.substr(0, 80);
    EXPECT_THAT(svg, HasSubstr("a &amp; b, 2 prompts"));
    EXPECT_THAT(svg, HasSubstr("prefers-color-scheme: dark"));
    EXPECT_THAT(svg, Not(HasSubstr("href")));
    const bool by_length = name.find("by-length") != std::string::npos;
    // A curve and an entry of the legend for each; a mark for each point, too.
    const size_t curves = by_length ? 3 : 2;
    EXPECT_EQ(count(svg, "<path class=\"vp-line"), 2 * curves);
    EXPECT_EQ(count(svg, "<path class=\"vp-mark"), curves + 6);
    EXPECT_THAT(svg, HasSubstr(by_length ? ">threshold 0.6</text>" : ">length 4</text>"));
    EXPECT_EQ(svg.find(">plain</text>") != std::string::npos, name.starts_with("speedup"));
  }
}

TEST(BenchSweep, DrawsTheQualityOfLossyRecipesAgainstTheirSpeed) {
  const test::TemporaryFolder folder;
  const fs::path prompts = folder.write("some.jsonl", kPrompts);
  const fs::path recipe =
      folder.write("lossy.toml", recipe_text("<lossy>", "[acceptance]\nrule = \"bild\"\nrollback = 2\n"));
  const fs::path figures = folder.path() / "figures";
  const RunResult result =
      run_bench(sweep(prompts, recipe, figures, {"--thresholds", "0.2,0.6", "--rollbacks", "1,4"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("perplexity"));
  EXPECT_EQ(files_of(figures), (std::vector<std::string>{
                                   "acceptance-by-threshold.svg", "agreement-by-speedup.svg",
                                   "perplexity-by-speedup.svg", "speedup-by-threshold.svg", "sweep.json"}));
  const json object = json::parse(test::read_file(figures / "sweep.json"));
  ASSERT_EQ(object["results"].size(), 4u);
  EXPECT_GT(object["plain"]["perplexity"], 1.0);
  for (const json& point : object["results"]) {
    EXPECT_EQ(point["length"], 8);
    EXPECT_GT(point["perplexity"], 1.0);
    EXPECT_GT(point["rollback"], 0.0);
    EXPECT_GE(point["agreement"], 0.0);
  }
  const std::string svg = test::read_file(figures / "agreement-by-speedup.svg");
  expect_well_formed(svg);
  EXPECT_THAT(svg, HasSubstr("&lt;lossy&gt;"));
  EXPECT_THAT(svg, HasSubstr(">rollback 4</text>"));
  EXPECT_THAT(svg, HasSubstr(">plain</text>"));
  EXPECT_THAT(test::read_file(figures / "speedup-by-threshold.svg"), HasSubstr("; rollback 1</text>"));
}

TEST(BenchSweep, RefusesWhatItCannotDoBeforeItMeasures) {
  const test::TemporaryFolder folder;
  const fs::path prompts = folder.write("some.jsonl", kPrompts);
  const fs::path figures = folder.path() / "figures";
  expect_bench_refuses(sweep(prompts, "plain", figures, {}), 2, {"plain drafts nothing"});
  expect_bench_refuses(sweep(prompts, "ml-specqd", figures, {"--rollbacks", "2"}), 2,
                       {"--rollbacks", "bild"});
  expect_bench_refuses(sweep(prompts, "ml-specqd", figures, {"--lengths", "0"}), 2, {"--lengths"});
  expect_bench_refuses(sweep(prompts, "ml-specqd", figures, {"--lengths", "1,65"}), 2, {"65"});
  expect_bench_refuses(sweep(prompts, "ml-specqd", figures, {"--thresholds", "1.5"}), 2, {"1.5"});
  expect_bench_refuses(sweep(prompts, "ml-specqd", folder.path(), {}), 1, {"not empty"});
  expect_bench_refuses(sweep(folder.path() / "absent", "ml-specqd", figures, {}), 1, {"absent"});
  expect_bench_refuses({"sweep", "m", "--prompts", prompts, "--recipe", "plain"}, 2,
                       {"--output is required"});
  EXPECT_EQ(files_of(folder.path()), std::vector<std::string>{"some.jsonl"});
}

}  // namespace
}  // namespace verbatim
