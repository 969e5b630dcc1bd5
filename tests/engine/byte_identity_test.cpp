#include "support/byte_identity.h"

namespace verbatim {
namespace {

using namespace test;  // NOLINT: the support of this very test

INSTANTIATE_TEST_SUITE_P(, ByteIdentity,
                         testing::Combine(testing::ValuesIn(machine_paths()), testing::Values(0.0f, 0.8f)),
                         parameter_name);

// Every combination on every prompt, with a model small enough for it.
TEST_P(ByteIdentity, EveryCombinationGivesThePlainTextOfASmallModel) {
  LOWER_PATHS_TOO_LONG_FOR_SANITIZERS(std::get<0>(GetParam()).name);
  const Model model = load_model(draft_model());
  const bool slow = std::get<0>(GetParam()).name == "scalar";
  std::vector<size_t> all;
  for (size_t v = 0; v < 2 * kVariations; ++v) all.push_back(v);
  Totals totals;
  expect_identical(model, model.encode("Once upon a time"), temperature_, slow ? 24 : 40, all, totals);
  if (HasFatalFailure()) return;
  if (!slow)
    expect_identical(model, model.encode("Lily and Tom went to the park."), temperature_, 40, all, totals);
  EXPECT_LT(totals.accepted, totals.drafted);
}

// Forty prompts of five kinds with the small model, ten in plain C++, and one of each kind with the default
// model: the first sixty bytes of each, with another combination for every prompt. `./test --all` has longer
// ones.
TEST_P(ByteIdentity, SpeculativeTextIsPlainTextOverTheBeginningsOfRealPrompts) {
  LOWER_PATHS_TOO_LONG_FOR_SANITIZERS(std::get<0>(GetParam()).name);
  constexpr size_t kBytes = 60;
  constexpr int64_t kTokens = 12;
  const bool slow = std::get<0>(GetParam()).name == "scalar";
  const auto compare = [&](const Model& model, size_t count, size_t first_variation) {
    Totals totals;
    const std::vector<std::string> prompts = real_prompts(count, kBytes);
    ASSERT_EQ(prompts.size(), count);
    for (size_t i = 0; i < count; ++i) {
      expect_identical(model, model.encode(prompts[i]), temperature_, kTokens,
                       {(first_variation + 7 * i) % kVariations}, totals);
      if (HasFatalFailure()) return;
    }
    EXPECT_EQ(totals.comparisons, count);
    EXPECT_GT(totals.accepted, 0);
  };
  compare(load_model(draft_model()), slow ? 10 : 40, 0);
  if (!HasFatalFailure()) compare(load_model(default_model()), slow ? 1 : 5, 3);
}

}  // namespace
}  // namespace verbatim
