#include "kv/window.h"

#include <gtest/gtest.h>

#include <set>

#include "kv/dense.h"

namespace verbatim {
namespace window_test {
namespace {

constexpr int64_t kDim = 64;

/// The positions that a row attends to through a view: those whose value shows in its output.
std::set<int64_t> seen_positions(const SparseCache& view, int64_t position, int64_t window = 0) {
  DenseCache cache({1, 1, kDim}, position + 1);
  const std::vector<float> zeros(kDim, 0.0f);
  const std::vector<float> ones(kDim, 1.0f);
  const std::vector<BFloat16> query(kDim, to_bfloat16(1.0f));
  const auto row = static_cast<int32_t>(position);
  AttentionScratch scratch;
  std::set<int64_t> seen;
  for (int64_t p = 0; p <= position; ++p) {
    cache.write(0, 0, p, zeros.data(), ones.data());
    std::vector<float> out(kDim);
    attend({.queries = query.data(),
            .positions = &row,
            .rows = 1,
            .group = 1,
            .head_dim = kDim,
            .width = kDim,
            .window = window,
            .scale = 1.0f,
            .cache = cache.head(0, 0),
            .view = view.view(0, 0, position),
            .out = out.data(),
            .out_stride = kDim},
           scratch);
    cache.write(0, 0, p, zeros.data(), zeros.data());
    if (out[0] > 0.0f) seen.insert(p);
  }
  return seen;
}

std::set<int64_t> range(int64_t first, int64_t end) {
  std::set<int64_t> positions;
  for (int64_t p = first; p < end; ++p) positions.insert(p);
  return positions;
}

TEST(WindowView, SeesTheSinksAndTheLatestWithinItsBudget) {
  for (const float budget : {0.25f, 0.5f}) {
    const WindowView view(budget);
    for (const int64_t position : {299, 383, 384, 511, 640, 700}) {
      const auto share = static_cast<int64_t>(budget * static_cast<float>(position + 1));
      std::set<int64_t> expected = range(position + 1 - (share - 4), position + 1);
      expected.merge(range(0, 4));
      EXPECT_EQ(static_cast<int64_t>(expected.size()), share);
      EXPECT_EQ(seen_positions(view, position), expected) << "budget " << budget << " position " << position;
    }
  }
}

TEST(WindowView, OfAShortTextSeesEverything) {
  const WindowView view(0.25f);
  for (const int64_t position : {0, 1, 31, 127, 130, 160}) {
    EXPECT_EQ(seen_positions(view, position), range(0, position + 1)) << position;
  }
  EXPECT_EQ(seen_positions(WindowView(1.0f), 400), range(0, 401));
}

TEST(WindowView, OfTheSmallestBudgetSeesTheRowItself) {
  std::set<int64_t> expected = range(0, 4);
  expected.insert(300);
  EXPECT_EQ(seen_positions(WindowView(0.001f), 300), expected);
}

}  // namespace
}  // namespace window_test
}  // namespace verbatim
