#include <gtest/gtest.h>

#include "support/engine_support.h"
#include "support/machine_paths.h"
#include "support/test_data.h"

// The promise: the same model, prompt and seed give the same bytes, plain or speculative, whatever the draft
// length, the prefill chunk and the number of threads, on every machine path, at any temperature.

namespace verbatim {
namespace {

using test::machine_paths;
using test::MachinePath;

constexpr size_t kPrompts = 40;

/// What must not change the text.
struct Variation {
  int32_t threads;
  int32_t draft_length;  // 0: plain
  float threshold;
  int64_t prefill_chunk;
};

std::ostream& operator<<(std::ostream& out, const Variation& v) {
  return out << v.threads << " threads, draft length " << v.draft_length << ", threshold " << v.threshold
             << ", prefill chunk " << v.prefill_chunk;
}

/// Every combination of threads 1 and 2, draft lengths 1, 4, 8, 16 and chunks 1, 7, 64, 512, one after the
/// other; the threshold rule takes part in every other one.
Variation variation(size_t index) {
  constexpr int32_t kLengths[] = {1, 4, 8, 16};
  constexpr int64_t kChunks[] = {1, 7, 64, 512};
  return {static_cast<int32_t>(1 + index % 2), kLengths[index / 2 % 4], index / 32 % 2 == 0 ? 0.0f : 0.4f,
          kChunks[index / 8 % 4]};
}
constexpr size_t kVariations = 32;

GenerateResult generate(const Model& model, const std::vector<int32_t>& prompt, float temperature,
                        int64_t tokens, const Variation& v) {
  GenerateOptions options;
  options.sampling.temperature = temperature;
  options.sampling.seed = 42;
  options.max_tokens = tokens;
  options.prefill_chunk = v.prefill_chunk;
  options.ignore_eos = true;
  Recipe recipe = load_recipe(v.draft_length == 0 ? "plain" : "ml-specqd");
  if (v.draft_length > 0) {
    recipe.draft_length = v.draft_length;
    recipe.draft_threshold = v.threshold;
  }
  Session session(model, static_cast<int64_t>(prompt.size()) + tokens, v.threads);
  return session.generate(prompt, options, recipe);
}

constexpr Variation kPlain = {1, 0, 0.0f, 512};

const Model& default_model() {
  static const Model model =
      Model::load(test::default_model(), {.mxfp4 = true, .threads = 2, .progress = {}});
  return model;
}

struct Totals {
  int64_t drafted = 0;
  int64_t accepted = 0;
  size_t comparisons = 0;
};

void expect_identical(const Model& model, const std::string& prompt, float temperature, int64_t tokens,
                      const std::vector<size_t>& variations, Totals& totals) {
  const std::vector<int32_t> ids = model.encode(prompt);
  const GenerateResult plain = generate(model, ids, temperature, tokens, kPlain);
  ASSERT_EQ(plain.tokens.size(), static_cast<size_t>(tokens));
  for (const size_t index : variations) {
    const Variation v = variation(index);
    const GenerateResult speculative = generate(model, ids, temperature, tokens, v);
    ASSERT_EQ(speculative.tokens, plain.tokens) << v << "\nprompt: " << prompt;
    ASSERT_EQ(speculative.text, plain.text) << v << "\nprompt: " << prompt;
    totals.drafted += speculative.stats.drafted;
    totals.accepted += speculative.stats.accepted;
    ++totals.comparisons;
  }
}

class ByteIdentity : public testing::TestWithParam<std::tuple<MachinePath, float>> {
 protected:
  test::SelectedKernels selected_{*std::get<0>(GetParam()).table};
  float temperature_ = std::get<1>(GetParam());
};

std::string parameter_name(const testing::TestParamInfo<std::tuple<MachinePath, float>>& info) {
  return std::get<0>(info.param).name + (std::get<1>(info.param) > 0 ? "_sampled" : "_greedy");
}

INSTANTIATE_TEST_SUITE_P(, ByteIdentity,
                         testing::Combine(testing::ValuesIn(machine_paths()), testing::Values(0.0f, 0.8f)),
                         parameter_name);

// Forty prompts of five kinds, and over them every combination of threads, draft length and chunk; on the
// paths that are quick enough a second time with the threshold rule.
TEST_P(ByteIdentity, SpeculativeTextIsPlainTextOverRealPrompts) {
  SKIP_WITHOUT(test::shared_data());
  const bool slow = std::get<0>(GetParam()).name == "scalar";
  Totals totals;
  const std::vector<std::string> prompts = test::real_prompts(kPrompts, slow ? 60 : 160);
  ASSERT_EQ(prompts.size(), kPrompts);
  for (size_t i = 0; i < prompts.size(); ++i) {
    std::vector<size_t> variations = {i % kVariations};
    if (!slow) variations.push_back(kVariations + (i + 7) % kVariations);
    expect_identical(default_model(), prompts[i], temperature_, slow ? 12 : 24, variations, totals);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(totals.comparisons, (slow ? 1 : 2) * kPrompts);
  // The drafts must be good enough for the test to mean something, and wrong often enough to be rejected at
  // times.
  EXPECT_GT(totals.accepted, totals.drafted / 2);
  EXPECT_LT(totals.accepted, totals.drafted);
}

// Every combination on every prompt, with a model small enough for it.
TEST_P(ByteIdentity, EveryCombinationGivesThePlainTextOfASmallModel) {
  SKIP_WITHOUT(test::shared_data());
  const Model model = Model::load(test::shared_data() / "models" / "stories260K" / "stories260K-f32.gguf",
                                  {.mxfp4 = true, .threads = 2, .progress = {}});
  std::vector<size_t> all;
  for (size_t v = 0; v < 2 * kVariations; ++v) all.push_back(v);
  Totals totals;
  for (const char* prompt : {"Once upon a time", "Lily and Tom went to the park."}) {
    expect_identical(model, prompt, temperature_, 40, all, totals);
    if (HasFatalFailure()) return;
  }
  EXPECT_LT(totals.accepted, totals.drafted);
}

/// A table whose bf16 product takes k in two halves, the second one first, when it sees more than one row.
const KernelTable& reordering_table() {
  static const KernelTable* honest = nullptr;
  static KernelTable table = [] {
    honest = &kernels();
    KernelTable reordering = *honest;
    reordering.name = "reordering";
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
  SKIP_WITHOUT(test::shared_data());
  const test::SelectedKernels selected(reordering_table());
  bool differs = false;
  for (const std::string& prompt : test::real_prompts(kPrompts, 160)) {
    const std::vector<int32_t> ids = default_model().encode(prompt);
    const GenerateResult plain = generate(default_model(), ids, 0.8f, 60, {1, 0, 0.0f, 1});
    const GenerateResult speculative = generate(default_model(), ids, 0.8f, 60, {1, 8, 0.0f, 1});
    differs = plain.tokens != speculative.tokens;
    if (differs) break;
  }
  EXPECT_TRUE(differs) << "the byte-identity tests would not notice a kernel that breaks the promise";
}

}  // namespace
}  // namespace verbatim
