#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/run_program.h"
#include "support/split_gguf.h"
#include "support/test_data.h"
#include "support/trained_gguf.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::run_program;

/// The draft model of the repository as a split GGUF file.
class SplitGguf : public testing::Test {
 protected:
  std::string output(const std::vector<std::string>& arguments) const {
    const test::RunResult result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  }

  test::TemporaryFolder folder_;
  fs::path whole_ = test::draft_gguf();
  std::vector<fs::path> parts_ = test::write_parts(whole_, folder_.path(), 7);
};

TEST_F(SplitGguf, GivesTheLogitsOfTheWholeFile) {
  const fs::path ids = folder_.path() / "ids.json";
  std::ofstream(ids) << "[1, 100, 200, 300, 17, 4]";
  const auto logits = [&](const std::string& model) {
    return output({"eval", "logits", model, "--tokens", ids, "--top", "50", "--json"});
  };
  const std::string expected = logits(whole_);
  for (const fs::path& part : {parts_.front(), parts_[1], parts_.back()}) EXPECT_EQ(logits(part), expected);
}

TEST_F(SplitGguf, SaysWhatTheWholeFileSays) {
  const auto say = [&](const std::string& model) {
    return output({"generate", model, "-p", "Once upon a time", "-n", "30"});
  };
  EXPECT_EQ(say(parts_.front()), say(whole_));
  EXPECT_EQ(output({"tokenize", parts_[1], "Once upon a time", "--json"}),
            output({"tokenize", whole_, "Once upon a time", "--json"}));
}

TEST_F(SplitGguf, IsInspectedWithAllItsParts) {
  const json whole = json::parse(output({"inspect", whole_, "--json"}));
  json parts = json::parse(output({"inspect", parts_[2], "--json"}));
  EXPECT_EQ(parts["model"]["files"], parts_.size());
  int64_t bytes = 0;
  for (const fs::path& part : parts_) bytes += static_cast<int64_t>(fs::file_size(part));
  EXPECT_EQ(parts["model"]["file_bytes"], bytes);
  EXPECT_EQ(parts["dtypes"], whole["dtypes"]);
  EXPECT_EQ(parts["model"]["parameters"], whole["model"]["parameters"]);
}

TEST_F(SplitGguf, IsPackedWithAllItsParts) {
  const std::string file = folder_.path() / "model.vbt";
  output({"pack", parts_.front(), "-o", file, "--formats", "f32"});
  const auto say = [&](const std::string& model) {
    return output({"generate", model, "-p", "Once upon a time", "-n", "30", "--formats", "f32"});
  };
  EXPECT_EQ(say(file), say(whole_));
  output({"inspect", file, "--verify"});
}

TEST_F(SplitGguf, IsRefusedInOneLineWhenAPartIsMissing) {
  fs::remove(parts_[1]);
  test::expect_refused({"inspect", parts_.front()}, 1, {parts_[1].filename().string(), "missing"});
}

}  // namespace
}  // namespace verbatim
