#include "formats/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "support/machine_paths.h"
#include "support/random.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

using test::machine_paths;
using test::MachinePath;

constexpr int64_t kColumns = 150;  // no whole number of panels
constexpr int64_t kInputs = 600;   // no whole number of groups, and more than one block of w4a16
constexpr int64_t kPaddedInputs = 608;
constexpr int64_t kMostRows = 512;

LinearWeight random_weight(FullFormat format) {
  ThreadTeam team(2);
  const std::vector<float> weights = test::random_floats(kColumns * kInputs, 1, 0.05f);
  const auto rows = [&](int64_t column, std::span<float> row) {
    std::copy_n(weights.data() + column * kInputs, kInputs, row.data());
  };
  PackResult packed = pack_linear(kColumns, kInputs, rows, {.full = format, .mxfp4 = true}, team);
  EXPECT_TRUE(packed.finite);
  return std::move(packed.weight);
}

std::vector<float> random_inputs() {
  std::vector<float> x = test::random_floats(kMostRows * kPaddedInputs, 2);
  for (int64_t r = 0; r < kMostRows; ++r) {
    std::fill(x.begin() + r * kPaddedInputs + kInputs, x.begin() + (r + 1) * kPaddedInputs, 0.0f);
  }
  return x;
}

std::vector<float> multiply(const LinearWeight& weight, Reading reading, const float* x, int64_t rows,
                            ThreadTeam& team, LinearWorkspace& workspace) {
  std::vector<float> y(static_cast<size_t>(rows * weight.padded_columns()), NAN);
  linear(weight, reading, {x, rows, kPaddedInputs}, {y.data(), rows, weight.padded_columns()}, workspace,
         team);
  return y;
}

class Linear : public testing::TestWithParam<MachinePath> {
 protected:
  test::SelectedKernels selected_{*GetParam().table};
  LinearWorkspace workspace_;
};

INSTANTIATE_TEST_SUITE_P(, Linear, testing::ValuesIn(machine_paths()),
                         test::path_name<testing::TestParamInfo<MachinePath>>);

TEST_P(Linear, EveryReadingGivesARowTheSameBitsWithAnyRowsAndThreads) {
  const std::vector<float> x = random_inputs();
  ThreadTeam one(1);
  ThreadTeam two(2);
  ThreadTeam three(3);
  std::vector<int64_t> counts = {64, 100, 512};
  for (int64_t m = 1; m <= 33; ++m) counts.push_back(m);
  struct Case {
    FullFormat format;
    Reading reading;
  };
  for (const Case c : {Case{FullFormat::kBf16, Reading::kFull}, Case{FullFormat::kF16, Reading::kFull},
                       Case{FullFormat::kF32, Reading::kFull}, Case{FullFormat::kBf16, Reading::kMxfp4W4A16},
                       Case{FullFormat::kBf16, Reading::kMxfp4W4A8}}) {
    const LinearWeight weight = random_weight(c.format);
    std::vector<float> alone;
    for (int64_t r = 0; r < kMostRows; ++r) {
      const std::vector<float> y =
          multiply(weight, c.reading, x.data() + r * kPaddedInputs, 1, one, workspace_);
      alone.insert(alone.end(), y.begin(), y.end());
    }
    for (const int64_t rows : counts) {
      for (ThreadTeam* team : {&one, &two, &three}) {
        const std::vector<float> y = multiply(weight, c.reading, x.data(), rows, *team, workspace_);
        ASSERT_EQ(std::memcmp(y.data(), alone.data(), y.size() * sizeof(float)), 0)
            << reading_name(c.reading) << ", " << rows << " rows, " << team->size() << " threads";
      }
    }
  }
}

TEST_P(Linear, W4A16IsTheBf16ProductWithTheUnpackedWeights) {
  const LinearWeight weight = random_weight(FullFormat::kBf16);
  ThreadTeam team(2);
  const auto unpacked_rows = [&](int64_t column, std::span<float> row) {
    std::vector<float> padded(kPaddedInputs);
    unpack_mxfp4_column(*weight.mxfp4, column, padded);
    std::copy_n(padded.begin(), row.size(), row.begin());
  };
  const PackResult unpacked =
      pack_linear(kColumns, kInputs, unpacked_rows, {.full = FullFormat::kBf16}, team);
  const std::vector<float> x = random_inputs();
  EXPECT_EQ(multiply(weight, Reading::kMxfp4W4A16, x.data(), 20, team, workspace_),
            multiply(unpacked.weight, Reading::kFull, x.data(), 20, team, workspace_));
}

TEST_P(Linear, W4A8IsCloseToW4A16) {
  const LinearWeight weight = random_weight(FullFormat::kBf16);
  ThreadTeam team(2);
  const std::vector<float> x = random_inputs();
  const std::vector<float> a16 = multiply(weight, Reading::kMxfp4W4A16, x.data(), 4, team, workspace_);
  const std::vector<float> a8 = multiply(weight, Reading::kMxfp4W4A8, x.data(), 4, team, workspace_);
  double error = 0.0;
  double size = 0.0;
  for (size_t i = 0; i < a16.size(); ++i) {
    error += std::pow(a16[i] - a8[i], 2.0);
    size += std::pow(a16[i], 2.0);
  }
  EXPECT_LT(std::sqrt(error / size), 0.02);
}

TEST(LinearWeights, NanAndInfinityAreNoticed) {
  ThreadTeam team(2);
  for (const float bad : {NAN, INFINITY}) {
    const auto rows = [&](int64_t column, std::span<float> row) {
      std::fill(row.begin(), row.end(), 1.0f);
      if (column == 20) row[5] = bad;
    };
    EXPECT_FALSE(pack_linear(40, 64, rows, {.mxfp4 = true}, team).finite);
  }
}

TEST(LinearWeights, AReadingThatWasNotPackedIsAUsageError) {
  ThreadTeam team(1);
  const auto rows = [](int64_t, std::span<float> row) { std::fill(row.begin(), row.end(), 1.0f); };
  const PackResult packed = pack_linear(16, 32, rows, {}, team);
  std::vector<float> x(32);
  std::vector<float> y(16);
  LinearWorkspace workspace;
  EXPECT_THROW(
      linear(packed.weight, Reading::kMxfp4W4A8, {x.data(), 1, 32}, {y.data(), 1, 16}, workspace, team),
      Error);
}

}  // namespace
}  // namespace verbatim
