#include "support/lossless_formats.h"

namespace verbatim {
namespace {

using namespace test;  // NOLINT: the support of this very test

INSTANTIATE_TEST_SUITE_P(, LosslessFormats,
                         testing::Combine(testing::ValuesIn(machine_paths()), testing::Values(0.0f, 0.8f)),
                         lossless_parameter_name);

TEST_P(LosslessFormats, SayWhatBf16SaysToRealPrompts) {
  for (const std::string& prompt : real_prompts(slow_ ? 2 : 5, slow_ ? 60 : 300)) {
    expect_the_text_of_bf16(prompt, temperature_, slow_ ? 8 : 60);
    if (HasFatalFailure()) return;
  }
}

// Many more prompts, where they cost least: each is tried from both formats. Whether with drafts, with how
// many threads and at which temperature goes around, so that every kind of prompt meets every combination.
TEST(LosslessFormatsOnTheFastestPath, SayWhatBf16SaysToManyRealPrompts) {
  const SelectedKernels selected(*machine_paths().back().table);
  constexpr int64_t kTokens = 60;
  const std::vector<std::string> prompts = real_prompts(40, 600);
  ASSERT_EQ(prompts.size(), 40u);
  for (size_t i = 0; i < prompts.size(); ++i) {
    const bool drafts = i % 2 == 1;
    const int threads = 1 + static_cast<int>(i / 2 % 2);
    const float temperature = i / 4 % 2 == 0 ? 0.0f : 0.8f;
    const GenerateResult expected = generate_in({"bf16", ""}, prompts[i], temperature, kTokens, 2);
    ASSERT_EQ(expected.tokens.size(), static_cast<size_t>(kTokens));
    for (const StoreRecipe& store : kStoreRecipes) {
      if (store.draft_reading.empty() == drafts) continue;
      expect_same_text(store, prompts[i], temperature, kTokens, threads, expected);
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace verbatim
