#include "kv/snapkv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/random.h"

namespace verbatim {
namespace snapkv_test {
namespace {

constexpr int64_t kDim = 64;
constexpr int64_t kGroup = 2;
constexpr int64_t kCapacity = 1024;
constexpr CacheShape kShape{.layers = 2, .kv_heads = 2, .head_dim = kDim};

/// Reads numbers back by the layout that attention/attention.h states.
float key_at(const HeadCache& head, int64_t position, int64_t d) {
  const int64_t slot = position % 128;
  const int64_t at = position / 128 * head.chunk_stride + slot / 16 * kDim * 16;
  if (head.f16_keys != nullptr) return to_float(head.f16_keys[at + d * 16 + slot % 16]);
  return to_float(head.keys[at + d / 2 * 32 + slot % 16 * 2 + d % 2]);
}

float value_at(const HeadCache& head, int64_t position, int64_t d) {
  const int64_t slot = position % 128;
  const int64_t at = position / 128 * head.chunk_stride + d / 16 * 128 * 16;
  if (head.f16_values != nullptr) return to_float(head.f16_values[at + slot * 16 + d % 16]);
  return to_float(head.values[at + slot / 2 * 32 + d % 16 * 2 + slot % 2]);
}

/// A prompt, the keys and values of a model with it, and the queries of the prompt's end.
class SnapKv : public testing::TestWithParam<Element> {
 protected:
  SnapKv() { std::iota(tokens_.begin(), tokens_.end(), 0); }

  /// Fills the cache; each position's value says which position, layer and head it is of.
  void write(int64_t length, float magnitude) {
    for (int64_t layer = 0; layer < kShape.layers; ++layer) {
      for (int64_t head = 0; head < kShape.kv_heads; ++head) {
        const auto keys = test::random_floats(static_cast<size_t>(length * kDim),
                                              static_cast<uint32_t>(10 + layer * 2 + head), magnitude);
        for (int64_t p = 0; p < length; ++p) {
          std::vector<float> value(kDim);
          value[0] = static_cast<float>(p / 128);
          value[1] = static_cast<float>(p % 128);
          value[2] = static_cast<float>(layer * 2 + head);
          cache_.write(layer, head, p, keys.data() + p * kDim, value.data());
        }
      }
    }
  }

  std::span<const int32_t> prompt(int64_t length) const {
    return std::span(tokens_).first(static_cast<size_t>(length));
  }

  /// Shows the view random queries of the prompt's last positions, the same for all heads.
  void show(SnapKvView& view, int64_t length) {
    std::vector<int32_t> positions(SnapKvView::kWindow);
    std::iota(positions.begin(), positions.end(), static_cast<int32_t>(length - SnapKvView::kWindow));
    AttentionScratch scratch;
    for (int64_t layer = 0; layer < kShape.layers; ++layer) {
      for (int64_t head = 0; head < kShape.kv_heads; ++head) {
        view.observe(layer, head,
                     {.queries = queries_.data(),
                      .positions = positions.data(),
                      .rows = SnapKvView::kWindow,
                      .group = kGroup,
                      .head_dim = kDim,
                      .width = kDim,
                      .window = 0,
                      .scale = kScale,
                      .cache = cache_.head(layer, head),
                      .out = nullptr,
                      .out_stride = 0},
                     scratch);
      }
    }
  }

  /// The positions that were copied, as their values say; checks that the keys came along.
  std::vector<int64_t> copied(const SnapKvView& view, int64_t layer, int64_t head, int64_t position) {
    const SparseView seen = view.view(layer, head, position);
    const HeadCache whole = cache_.head(layer, head);
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < seen.selected_count; ++i) {
      const auto p =
          static_cast<int64_t>(value_at(seen.selected, i, 0) * 128 + value_at(seen.selected, i, 1));
      EXPECT_EQ(value_at(seen.selected, i, 2), static_cast<float>(layer * 2 + head));
      for (int64_t d = 0; d < kDim; ++d) EXPECT_EQ(key_at(seen.selected, i, d), key_at(whole, p, d));
      positions.push_back(p);
    }
    return positions;
  }

  /// What the window gives each position before it, pooled, in double precision.
  std::vector<double> pooled(int64_t layer, int64_t head, int64_t length) const {
    const HeadCache cache = cache_.head(layer, head);
    const int64_t first = length - SnapKvView::kWindow;
    std::vector<double> shares(static_cast<size_t>(first));
    for (int64_t q = 0; q < SnapKvView::kWindow * kGroup; ++q) {
      const int64_t row = first + q / kGroup;
      std::vector<double> weights;
      double sum = 0.0;
      for (int64_t p = 0; p <= row; ++p) {
        double score = 0.0;
        for (int64_t d = 0; d < kDim; ++d) {
          score += static_cast<double>(to_float(queries_[static_cast<size_t>(q * kDim + d)])) *
                   key_at(cache, p, d);
        }
        weights.push_back(std::exp(score * kScale));
        sum += weights.back();
      }
      for (size_t p = 0; p < shares.size(); ++p) shares[p] += weights[p] / sum;
    }
    std::vector<double> pooled;
    for (int64_t p = 0; p < first; ++p) {
      double largest = 0.0;
      for (int64_t i = std::max<int64_t>(p - 3, 0); i <= std::min(p + 3, first - 1); ++i) {
        largest = std::max(largest, shares[static_cast<size_t>(i)]);
      }
      pooled.push_back(largest);
    }
    return pooled;
  }

  static constexpr float kScale = 0.125f;
  DenseCache cache_{kShape, kCapacity, GetParam()};
  std::vector<int32_t> tokens_ = std::vector<int32_t>(kCapacity);
  std::vector<BFloat16> queries_ = test::random_bf16(SnapKvView::kWindow * kGroup * kDim, 5);
};

INSTANTIATE_TEST_SUITE_P(, SnapKv, testing::Values(Element::kBf16, Element::kF16), [](const auto& info) {
  return std::string(info.param == Element::kBf16 ? "bf16" : "f16");
});

TEST_P(SnapKv, CopiesWhatTheReferenceChoosesInOrder) {
  write(600, 2.0f);
  SnapKvView view(kShape, kCapacity, GetParam(), 0.25f);
  ASSERT_EQ(view.follow(prompt(600), cache_), 32);
  show(view, 600);
  std::vector<std::vector<int64_t>> all;
  for (int64_t layer = 0; layer < kShape.layers; ++layer) {
    for (int64_t head = 0; head < kShape.kv_heads; ++head) {
      const std::vector<int64_t> positions = copied(view, layer, head, 600);
      ASSERT_EQ(positions.size(), 600U / 4 - 32);
      for (size_t i = 1; i < positions.size(); ++i) ASSERT_LT(positions[i - 1], positions[i]);
      ASSERT_LT(positions.back(), 600 - 32);
      const std::vector<double> votes = pooled(layer, head, 600);
      std::vector<double> ranked = votes;
      std::sort(ranked.rbegin(), ranked.rend());
      // Attention rounds its probabilities, so that those near the border may change places.
      const double border = ranked[positions.size() - 1];
      for (const int64_t p : positions) EXPECT_GE(votes[static_cast<size_t>(p)], 0.98 * border) << p;
      for (int64_t p = 0; p < 600 - 32; ++p) {
        if (votes[static_cast<size_t>(p)] > 1.02 * border) {
          EXPECT_TRUE(std::binary_search(positions.begin(), positions.end(), p)) << p;
        }
      }
      all.push_back(positions);
    }
  }
  EXPECT_NE(all[0], all[1]);
  EXPECT_NE(all[0], all[2]);
  const SparseView seen = view.view(0, 0, 600);
  EXPECT_EQ(seen.first, 600 - 32);
  EXPECT_EQ(seen.sinks, 0);
}

// The position that has all the attention comes with three neighbours on either side, which pooling makes its
// equals; of the next best, which are equal too, those that have more themselves and then the earliest.
TEST_P(SnapKv, ThePositionThatHasAllTheAttentionIsCopiedWithItsNeighbours) {
  write(400, 0.0f);  // all alike
  std::fill(queries_.begin(), queries_.end(), to_bfloat16(1.0f));
  const std::vector<float> high(kDim, 2.0f);
  const std::vector<float> value = {1.0f, 72.0f, 0.0f};  // position 200
  std::vector<float> marked(kDim);
  std::copy(value.begin(), value.end(), marked.begin());
  cache_.write(0, 0, 200, high.data(), marked.data());
  const auto budget = static_cast<float>((32.0 + 9.5) / 400.0);
  SnapKvView view(kShape, kCapacity, GetParam(), budget);
  ASSERT_EQ(view.follow(prompt(400), cache_), 32);
  show(view, 400);
  EXPECT_EQ(copied(view, 0, 0, 400), (std::vector<int64_t>{0, 1, 197, 198, 199, 200, 201, 202, 203}));
  EXPECT_EQ(copied(view, 1, 0, 400), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_P(SnapKv, OfAShortPromptNothingIsLeftOut) {
  SnapKvView view(kShape, kCapacity, GetParam(), 0.25f);
  for (const int64_t length : {1, 20, 79, 131}) {
    write(length, 1.0f);
    EXPECT_EQ(view.follow(prompt(length), cache_), 0) << length;
    EXPECT_EQ(view.view(0, 0, length).first, 0);
    EXPECT_EQ(view.view(0, 0, length).selected_count, 0);
  }
  EXPECT_EQ(SnapKvView::selected_count(131, 0.25f), 0);
  EXPECT_EQ(SnapKvView::selected_count(132, 0.25f), 1);
  EXPECT_EQ(SnapKvView::selected_count(400, 1.0f), 400 - 32);
  EXPECT_EQ(SnapKvView::selected_count(20, 1.0f), 0);
}

TEST_P(SnapKv, APromptVotesAndAStepDoesNot) {
  SnapKvView view(kShape, kCapacity, GetParam(), 0.25f);
  write(1000, 1.0f);
  ASSERT_EQ(view.follow(prompt(400), cache_), 32);
  show(view, 400);
  const std::vector<int64_t> first = copied(view, 0, 0, 400);
  EXPECT_EQ(first.size(), 400U / 4 - 32);
  for (int64_t length = 401; length < 600; length += 13) {
    ASSERT_EQ(view.follow(prompt(length), cache_), 0);
    EXPECT_EQ(view.view(0, 0, length).first, 400 - 32);
    EXPECT_EQ(copied(view, 0, 0, length), first);
  }
  ASSERT_EQ(view.follow(prompt(900), cache_), 32);  // the next prompt of a chat
  show(view, 900);
  EXPECT_EQ(view.view(0, 0, 900).first, 900 - 32);
  EXPECT_EQ(copied(view, 0, 0, 900).size(), 900U / 4 - 32);
}

// A text that is cut after its prompt goes on with what was chosen; cut within it, or changed, it is voted on
// anew, however little is new.
TEST_P(SnapKv, AChangedPromptVotesAnew) {
  SnapKvView view(kShape, kCapacity, GetParam(), 0.25f);
  write(1000, 1.0f);
  ASSERT_EQ(view.follow(prompt(400), cache_), 32);
  show(view, 400);
  ASSERT_EQ(view.follow(prompt(450), cache_), 0);
  EXPECT_EQ(view.follow(prompt(410), cache_), 0);
  EXPECT_EQ(view.follow(prompt(400), cache_), 0);
  ASSERT_EQ(view.follow(prompt(399), cache_), 32);
  show(view, 399);
  EXPECT_EQ(view.view(0, 0, 399).first, 399 - 32);
  tokens_[5] += 1;
  EXPECT_EQ(view.follow(prompt(401), cache_), 32);
  show(view, 401);
  // Rows before the window see everything below them.
  EXPECT_EQ(view.view(0, 0, 300).selected_count, 0);
  EXPECT_EQ(view.view(0, 0, 300).first, 0);
  EXPECT_EQ(view.follow(prompt(50), cache_), 0);
  EXPECT_EQ(view.view(0, 0, 50).selected_count, 0);
}

TEST_P(SnapKv, QueriesThatAreNoNumbersChooseSomethingAllTheSame) {
  write(400, 1.0f);
  std::fill(queries_.begin(), queries_.end(), BFloat16{0x7fc0});
  SnapKvView view(kShape, kCapacity, GetParam(), 0.25f);
  ASSERT_EQ(view.follow(prompt(400), cache_), 32);
  show(view, 400);
  EXPECT_EQ(copied(view, 0, 0, 400).size(), 400U / 4 - 32);
}

}  // namespace
}  // namespace snapkv_test
}  // namespace verbatim
