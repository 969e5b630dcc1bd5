#include <gtest/gtest.h>

#include <cmath>

#include "attention/attention.h"
#include "kv/f32.h"
#include "support/machine_paths.h"
#include "support/random.h"

namespace verbatim {
namespace f32_attention_test {
namespace {

using test::machine_paths;
using test::MachinePath;

constexpr int64_t kGroup = 3;
constexpr float kScale = 0.3f;

/// An F32 cache of one head filled with random keys and values, and random queries in F32.
struct Scene {
  Scene(int64_t head_dim_, int64_t positions_, int64_t window_)
      : head_dim(head_dim_),
        width((head_dim_ + 63) / 64 * 64),
        window(window_),
        cache({1, 1, head_dim_}, positions_),
        keys(test::random_floats(static_cast<size_t>(positions_ * head_dim_), 1)),
        values(test::random_floats(static_cast<size_t>(positions_ * head_dim_), 2)),
        queries(test::random_floats(static_cast<size_t>(positions_ * kGroup * width), 3)) {
    for (int64_t p = 0; p < positions_; ++p) {
      cache.write(0, 0, p, keys.data() + p * head_dim, values.data() + p * head_dim);
    }
    for (size_t i = 0; i < queries.size(); ++i) {
      if (static_cast<int64_t>(i) % width >= head_dim) queries[i] = 0.0f;
    }
  }

  /// The outputs of the rows at positions first .. first + count - 1, computed together.
  std::vector<float> attend_rows(int32_t first, int32_t count, AttentionScratch& scratch) const {
    std::vector<int32_t> positions;
    for (int32_t row = first; row < first + count; ++row) positions.push_back(row);
    std::vector<float> out(static_cast<size_t>(count * kGroup * head_dim));
    attend({.queries = nullptr,
            .f32_queries = queries.data() + first * kGroup * width,
            .positions = positions.data(),
            .rows = count,
            .group = kGroup,
            .head_dim = head_dim,
            .width = width,
            .window = window,
            .scale = kScale,
            .cache = cache.head(0, 0),
            .out = out.data(),
            .out_stride = kGroup * head_dim},
           scratch);
    return out;
  }

  /// The output of one query head of a row, computed in double precision.
  std::vector<double> reference(int32_t row, int64_t head) const {
    const int64_t first = window > 0 ? std::max<int64_t>(0, row - window + 1) : 0;
    std::vector<double> out(static_cast<size_t>(head_dim));
    double sum = 0.0;
    for (int64_t p = first; p <= row; ++p) {
      double score = 0.0;
      for (int64_t d = 0; d < head_dim; ++d) {
        score += double{queries[static_cast<size_t>((row * kGroup + head) * width + d)]} *
                 keys[static_cast<size_t>(p * head_dim + d)];
      }
      const double weight = std::exp(score * kScale);
      sum += weight;
      for (int64_t d = 0; d < head_dim; ++d) {
        out[static_cast<size_t>(d)] += weight * values[static_cast<size_t>(p * head_dim + d)];
      }
    }
    for (double& number : out) number /= sum;
    return out;
  }

  int64_t head_dim;
  int64_t width;
  int64_t window;
  F32Cache cache;
  std::vector<float> keys;
  std::vector<float> values;
  std::vector<float> queries;
};

class F32Attention : public testing::TestWithParam<MachinePath> {
 protected:
  test::SelectedKernels selected_{*GetParam().table};
  AttentionScratch scratch_;
};

INSTANTIATE_TEST_SUITE_P(, F32Attention, testing::ValuesIn(machine_paths()),
                         test::path_name<testing::TestParamInfo<MachinePath>>);

// A query, a probability, a key or a value in 16 bits would be off by a hundred times as much.
TEST_P(F32Attention, RoundsNothingTo16Bits) {
  for (const int64_t head_dim : {8, 64, 80}) {
    for (const int64_t window : {0, 50}) {
      const Scene scene(head_dim, 300, window);
      for (const int32_t row : {0, 31, 127, 128, 255, 299}) {
        const std::vector<float> out = scene.attend_rows(row, 1, scratch_);
        for (int64_t head = 0; head < kGroup; ++head) {
          const std::vector<double> expected = scene.reference(row, head);
          for (int64_t d = 0; d < head_dim; ++d) {
            ASSERT_NEAR(out[static_cast<size_t>(head * head_dim + d)], expected[static_cast<size_t>(d)], 1e-5)
                << "head dimension " << head_dim << " window " << window << " row " << row;
          }
        }
      }
    }
  }
}

TEST_P(F32Attention, ARowDoesNotDependOnTheRowsBesideIt) {
  for (const int64_t window : {0, 50}) {
    const Scene scene(64, 300, window);
    std::vector<float> alone;
    for (int32_t row = 0; row < 300; ++row) {
      const std::vector<float> out = scene.attend_rows(row, 1, scratch_);
      alone.insert(alone.end(), out.begin(), out.end());
    }
    for (const int32_t rows : {7, 100, 300}) {
      std::vector<float> together;
      for (int32_t first = 0; first < 300; first += rows) {
        const std::vector<float> out = scene.attend_rows(first, std::min(rows, 300 - first), scratch_);
        together.insert(together.end(), out.begin(), out.end());
      }
      ASSERT_EQ(together, alone) << rows << " rows, window " << window;
    }
  }
}

}  // namespace
}  // namespace f32_attention_test
}  // namespace verbatim
