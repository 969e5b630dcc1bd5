#include "support/byte_identity.h"

namespace verbatim {
namespace {

using namespace test;  // NOLINT: the support of this very test

constexpr size_t kPrompts = 40;

const Model& loaded_model() {
  static const Model model = load_model(test::default_model());
  return model;
}

INSTANTIATE_TEST_SUITE_P(, ByteIdentity,
                         testing::Combine(testing::ValuesIn(machine_paths()), testing::Values(0.0f, 0.8f)),
                         parameter_name);

// Forty prompts of five kinds, and over them every combination of threads, draft length and chunk; on the
// paths that are quick enough a second time with the threshold rule.
TEST_P(ByteIdentity, SpeculativeTextIsPlainTextOverRealPrompts) {
  const bool slow = std::get<0>(GetParam()).name == "scalar";
  Totals totals;
  const std::vector<std::string> prompts = test::real_prompts(kPrompts, slow ? 60 : 160);
  ASSERT_EQ(prompts.size(), kPrompts);
  for (size_t i = 0; i < prompts.size(); ++i) {
    std::vector<size_t> variations = {i % kVariations};
    if (!slow) variations.push_back(kVariations + (i + 7) % kVariations);
    expect_identical(loaded_model(), loaded_model().encode(prompts[i]), temperature_, slow ? 12 : 24,
                     variations, totals);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(totals.comparisons, (slow ? 1 : 2) * kPrompts);
  // The drafts must be good enough for the test to mean something, and wrong often enough to be rejected at
  // times.
  EXPECT_GT(totals.accepted, totals.drafted / 2);
  EXPECT_LT(totals.accepted, totals.drafted);
}

// Contexts that cross the borders of attention's chunks of 128 positions, in the prompt and while decoding,
// and are longer than the prefill chunks.
TEST_P(ByteIdentity, SpeculativeTextIsPlainTextAcrossAttentionChunks) {
  if (std::get<0>(GetParam()).name == "scalar") GTEST_SKIP() << "takes minutes in plain C++";
  std::string text;
  for (const std::string& prompt : real_prompts(kPrompts, 1000)) text += prompt + "\n\n";
  const std::vector<int32_t> ids = loaded_model().encode(text);
  Totals totals;
  std::vector<size_t> all;
  for (size_t v = 0; v < kVariations; ++v) all.push_back(v);
  expect_identical(loaded_model(), {ids.begin(), ids.begin() + 120}, temperature_, 20, all, totals);
  if (HasFatalFailure()) return;
  expect_identical(loaded_model(), {ids.begin(), ids.begin() + 600}, temperature_, 20, {12, 23, 26, 29, 63},
                   totals);
}

/// A table whose bf16 product takes k in two halves, the second one first, when it sees more than one row.
const KernelTable& reordering_table() {
  static const KernelTable* honest = nullptr;
  static KernelTable table = [] {
    honest = &kernels();
    KernelTable reordering = *honest;
    reordering.name = "reordering";
    reordering.tile_product = nullptr;  // so that every bf16 product goes through the panels
    reordering.panels_bf16 = [](const PanelProduct<BFloat16, BFloat16>& product) {
      const int64_t half = product.k / 2 / kInnerStep * kInnerStep;
      if (product.rows == 1 || half == 0 || product.accumulate) {
        honest->panels_bf16(product);
        return;
      }
      PanelProduct<BFloat16, BFloat16> second = product;
      second.a += half;
      second.panels += half * kPanelWidth;
      second.k = product.k - half;
      honest->panels_bf16(second);
      PanelProduct<BFloat16, BFloat16> first = product;
      first.k = half;
      first.accumulate = true;
      honest->panels_bf16(first);
    };
    return reordering;
  }();
  return table;
}

// The comparison above must be able to fail: a kernel that sums in another order when it sees more than one
// row, the defect that other engines have, has to change a text.
TEST(ByteIdentityOfAReorderingKernel, IsFoundToBeBroken) {
  const test::SelectedKernels selected(reordering_table());
  bool differs = false;
  for (const std::string& prompt : test::real_prompts(kPrompts, 160)) {
    const std::vector<int32_t> ids = loaded_model().encode(prompt);
    const GenerateResult plain = generate(loaded_model(), ids, 0.8f, 60, {1, 0, 0.0f, 1});
    const GenerateResult speculative = generate(loaded_model(), ids, 0.8f, 60, {1, 8, 0.0f, 1});
    differs = plain.tokens != speculative.tokens;
    if (differs) break;
  }
  EXPECT_TRUE(differs) << "the byte-identity tests would not notice a kernel that breaks the promise";
}

}  // namespace
}  // namespace verbatim
