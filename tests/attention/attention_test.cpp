#include "attention/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kv/dense.h"
#include "support/machine_paths.h"
#include "support/random.h"

namespace verbatim {
namespace {

using test::machine_paths;
using test::MachinePath;

/// A cache of one head filled with random keys and values, and random queries.
struct Scene {
  Scene(int64_t head_dim_, int64_t group_, int64_t positions_, int64_t window_)
      : head_dim(head_dim_),
        group(group_),
        positions(positions_),
        window(window_),
        cache({1, 1, head_dim_}, positions_),
        keys(test::random_floats(static_cast<size_t>(positions_ * head_dim_), 1)),
        values(test::random_floats(static_cast<size_t>(positions_ * head_dim_), 2)),
        queries(test::random_bf16(static_cast<size_t>(positions_ * group_ * cache.width()), 3)) {
    for (int64_t p = 0; p < positions; ++p) {
      cache.write(0, 0, p, keys.data() + p * head_dim, values.data() + p * head_dim);
    }
    for (size_t i = 0; i < queries.size(); ++i) {
      if (static_cast<int64_t>(i) % cache.width() >= head_dim) queries[i] = {0};
    }
  }

  /// The outputs of the rows at the given positions, computed together.
  std::vector<float> attend_rows(const std::vector<int32_t>& rows, AttentionScratch& scratch) const {
    std::vector<BFloat16> packed;
    for (const int32_t row : rows) {
      const auto begin = queries.begin() + row * group * cache.width();
      packed.insert(packed.end(), begin, begin + group * cache.width());
    }
    std::vector<float> out(rows.size() * static_cast<size_t>(group * head_dim));
    attend({.queries = packed.data(),
            .positions = rows.data(),
            .rows = static_cast<int64_t>(rows.size()),
            .group = group,
            .head_dim = head_dim,
            .width = cache.width(),
            .window = window,
            .scale = scale,
            .cache = cache.head(0, 0),
            .out = out.data(),
            .out_stride = group * head_dim},
           scratch);
    return out;
  }

  int64_t first_seen(int32_t row) const { return window > 0 ? std::max<int64_t>(0, row - window + 1) : 0; }

  /// The attention of a row from the first position that it sees to its own.
  std::vector<double> weights(int32_t row, int64_t head) const {
    const int64_t first = first_seen(row);
    std::vector<double> weights;
    double sum = 0.0;
    for (int64_t p = first; p <= row; ++p) {
      double score = 0.0;
      for (int64_t d = 0; d < head_dim; ++d) {
        const double q = to_float(queries[static_cast<size_t>((row * group + head) * cache.width() + d)]);
        score += q * to_float(to_bfloat16(keys[static_cast<size_t>(p * head_dim + d)]));
      }
      weights.push_back(std::exp(score * scale));
      sum += weights.back();
    }
    for (double& weight : weights) weight /= sum;
    return weights;
  }

  std::vector<double> reference(int32_t row, int64_t head) const {
    const int64_t first = first_seen(row);
    const std::vector<double> shares = weights(row, head);
    std::vector<double> out(static_cast<size_t>(head_dim));
    for (int64_t p = first; p <= row; ++p) {
      for (int64_t d = 0; d < head_dim; ++d) {
        out[static_cast<size_t>(d)] += shares[static_cast<size_t>(p - first)] *
                                       to_float(to_bfloat16(values[static_cast<size_t>(p * head_dim + d)]));
      }
    }
    return out;
  }

  int64_t head_dim;
  int64_t group;
  int64_t positions;
  int64_t window;
  float scale = 0.3f;
  DenseCache cache;
  std::vector<float> keys;
  std::vector<float> values;
  std::vector<BFloat16> queries;
};

class Attention : public testing::TestWithParam<MachinePath> {
 protected:
  test::SelectedKernels selected_{*GetParam().table};
  AttentionScratch scratch_;
};

INSTANTIATE_TEST_SUITE_P(, Attention, testing::ValuesIn(machine_paths()),
                         test::path_name<testing::TestParamInfo<MachinePath>>);

TEST_P(Attention, IsCloseToTheReference) {
  for (const int64_t head_dim : {8, 64, 80}) {
    for (const int64_t window : {0, 50, 200}) {
      const Scene scene(head_dim, 3, 300, window);
      for (const int32_t row : {0, 1, 31, 127, 128, 129, 255, 299}) {
        const std::vector<float> out = scene.attend_rows({row}, scratch_);
        for (int64_t head = 0; head < 3; ++head) {
          const std::vector<double> expected = scene.reference(row, head);
          for (int64_t d = 0; d < head_dim; ++d) {
            ASSERT_NEAR(out[static_cast<size_t>(head * head_dim + d)], expected[static_cast<size_t>(d)], 0.02)
                << "head dimension " << head_dim << " window " << window << " row " << row;
          }
        }
      }
    }
  }
}

TEST_P(Attention, ARowDoesNotDependOnTheRowsBesideIt) {
  for (const int64_t window : {0, 100}) {
    const Scene scene(64, 2, 400, window);
    std::vector<int32_t> all(400);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int32_t>(i);
    std::vector<float> alone;
    for (const int32_t row : all) {
      const std::vector<float> out = scene.attend_rows({row}, scratch_);
      alone.insert(alone.end(), out.begin(), out.end());
    }
    for (const size_t rows : {2, 3, 5, 8, 13, 16, 33, 64, 100, 400}) {
      for (size_t first = 0; first + rows <= all.size(); first += rows) {
        const std::vector<int32_t> block(all.begin() + static_cast<long>(first),
                                         all.begin() + static_cast<long>(first + rows));
        const std::vector<float> out = scene.attend_rows(block, scratch_);
        ASSERT_EQ(std::memcmp(out.data(), alone.data() + first * 128, out.size() * sizeof(float)), 0)
            << rows << " rows from " << first << ", window " << window;
      }
    }
  }
}

TEST_P(Attention, TheSharesOfPositionsAreThoseOfTheReference) {
  for (const int64_t head_dim : {8, 80}) {
    for (const int64_t window : {0, 150}) {
      const Scene scene(head_dim, 3, 300, window);
      const std::vector<int32_t> rows = {260, 261, 262, 263, 264};
      const int64_t first = rows.front() * 3 * scene.cache.width();
      for (const size_t wanted : {260U, 100U, 0U}) {
        std::vector<float> shares(wanted, 1.0f);  // they are added to what is there
        add_attention_shares({.queries = scene.queries.data() + first,
                              .positions = rows.data(),
                              .rows = 5,
                              .group = 3,
                              .head_dim = head_dim,
                              .width = scene.cache.width(),
                              .window = window,
                              .scale = scene.scale,
                              .cache = scene.cache.head(0, 0),
                              .out = nullptr,
                              .out_stride = 0},
                             scratch_, shares);
        std::vector<double> expected(300, 1.0);
        for (const int32_t row : rows) {
          for (int64_t head = 0; head < 3; ++head) {
            const std::vector<double> weights = scene.weights(row, head);
            for (size_t i = 0; i < weights.size(); ++i) {
              expected[static_cast<size_t>(row) + 1 - weights.size() + i] += weights[i];
            }
          }
        }
        for (size_t p = 0; p < wanted; ++p) {
          ASSERT_NEAR(shares[p], expected[p], 0.01 * (expected[p] - 1.0) + 1e-6)
              << "position " << p << " window " << window;
        }
      }
    }
  }
}

TEST_P(Attention, ARowDoesNotDependOnWhatLiesAfterItsPosition) {
  Scene scene(64, 2, 200, 0);
  const std::vector<float> before = scene.attend_rows({100}, scratch_);
  const std::vector<float> other = test::random_floats(64, 9, 100.0f);
  for (int64_t p = 101; p < 200; ++p) scene.cache.write(0, 0, p, other.data(), other.data());
  EXPECT_EQ(scene.attend_rows({100}, scratch_), before);
}

}  // namespace
}  // namespace verbatim
