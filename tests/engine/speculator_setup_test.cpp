#include "engine/speculator_setup.h"

#include <gtest/gtest.h>

#include "engine/model_access.h"
#include "support/drafting.h"
#include "support/speculative_text.h"

namespace verbatim {
namespace {

/// What `auto` drafts with from a tiny model whose weights are stored in these formats; empty if the model
/// does not draft for itself.
std::string reading_of_auto(std::vector<std::string> formats) {
  test::measure_apart();
  const test::TemporaryFolder folder;
  test::TinyModelOptions options = test::small_vocabulary(40);
  options.dtype = DType::kBF16;
  test::write_tiny_llama(folder.path() / "model", options);
  const Model model = test::load_model(folder.path() / "model", std::move(formats));
  ThreadTeam team(1);
  Evaluator evaluator(data_of(model).decoder, team);
  const auto speculator =
      make_speculator(load_recipe("auto"), data_of(model), nullptr, evaluator, 64, team, {});
  // It goes without another model, which there is none of.
  const std::vector<DraftLevel>& levels = speculator->recipe().levels;
  EXPECT_EQ(levels.back().kind, DraftLevel::Kind::kNgram);
  EXPECT_LE(levels.size(), 2u);
  return levels.front().kind == DraftLevel::Kind::kSelf ? levels.front().reading : "";
}

TEST(PlannedRecipe, DraftsWithAReadingThatThereIs) {
  EXPECT_EQ(reading_of_auto({"mxbf16"}), "mxbf16-draft");
  EXPECT_EQ(reading_of_auto({"full", "mxfp4"}), "mxfp4-w4a8");
  EXPECT_EQ(reading_of_auto({"bsfp"}), "bsfp-draft");
  EXPECT_EQ(reading_of_auto({"full", "bsfp"}), "bsfp-draft");
  EXPECT_EQ(reading_of_auto({"full", "int4"}), "int4-w4a8");
  EXPECT_EQ(reading_of_auto({"int4"}), "int4-w4a8");
  EXPECT_EQ(reading_of_auto({"full", "int4-asymmetric"}), "int4-asymmetric-w4a8");
  EXPECT_EQ(reading_of_auto({"full"}), "");
}

TEST(PlannedRecipe, DraftsWithTheSameNumbersAsItsOwnReadingBeforeAnyOthers) {
  EXPECT_EQ(reading_of_auto({"full", "bsfp", "int4", "mxfp4"}), "mxfp4-w4a8");
  EXPECT_EQ(reading_of_auto({"full", "bsfp", "int4"}), "int4-w4a8");
}

}  // namespace
}  // namespace verbatim
