#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/machine_paths.h"
#include "support/packed.h"
#include "support/random.h"
#include "support/test_data.h"

namespace verbatim {
namespace row_independence_test {
namespace {

using test::machine_paths;
using test::MachinePath;
using test::multiply;

// The promise at its root: a row's result is the same bits whatever other rows are there and however many
// threads work.

struct Size {
  int64_t columns;
  int64_t k;
};

class RowIndependence : public testing::TestWithParam<std::tuple<MachinePath, Format>> {
 protected:
  void SetUp() override {
    if (std::get<0>(GetParam()).name == "scalar") TOO_LONG_FOR_SANITIZERS();
  }
  /// Every reading of the format with each number of rows, with 1, 2 and 3 threads, against single rows.
  void expect_independent(Size size, const std::vector<int64_t>& counts) {
    expect_independent(size, counts, test::random_floats(size.columns * size.k, 1, 0.05f), nullptr);
  }
  /// Likewise with these weights; the activations are changed by `change(row, k, value)`, if given.
  using Change = float (*)(int64_t row, int64_t k, float value);
  void expect_independent(Size size, const std::vector<int64_t>& counts, const std::vector<float>& weights,
                          Change change) {
    const Format format = std::get<1>(GetParam());
    for (const Element element : {Element::kBf16, Element::kF16}) {
      if (element == Element::kF16 && format != Format::kBsfp) continue;
      const LinearWeight weight = test::pack(size.columns, size.k, weights, {format}, element);
      for (const Reading reading : readings(format)) {
        expect_independent(weight, reading, counts, change);
      }
    }
  }

 private:
  void expect_independent(const LinearWeight& weight, Reading reading, const std::vector<int64_t>& counts,
                          Change change) {
    const int64_t most = *std::max_element(counts.begin(), counts.end());
    std::vector<float> x = test::random_inputs(most, weight.k, 2);
    for (int64_t i = 0; change != nullptr && i < most * weight.padded_k(); ++i) {
      const int64_t k = i % weight.padded_k();
      if (k < weight.k)
        x[static_cast<size_t>(i)] = change(i / weight.padded_k(), k, x[static_cast<size_t>(i)]);
    }
    std::vector<float> alone;
    for (int64_t r = 0; r < most; ++r) {
      const std::vector<float> y =
          multiply(weight, reading, x.data() + r * weight.padded_k(), 1, teams_[0], workspace_);
      alone.insert(alone.end(), y.begin(), y.end());
    }
    for (const int64_t rows : counts) {
      for (ThreadTeam& team : teams_) {
        const std::vector<float> y = multiply(weight, reading, x.data(), rows, team, workspace_);
        ASSERT_EQ(std::memcmp(y.data(), alone.data(), y.size() * sizeof(float)), 0)
            << reading_name(reading) << ", " << rows << " rows, " << team.size() << " threads";
      }
    }
  }

  test::SelectedKernels selected_{*std::get<0>(GetParam()).table};
  ThreadTeam teams_[3] = {ThreadTeam(1), ThreadTeam(2), ThreadTeam(3)};
  LinearWorkspace workspace_;
};

INSTANTIATE_TEST_SUITE_P(, RowIndependence,
                         testing::Combine(testing::ValuesIn(machine_paths()),
                                          testing::ValuesIn(all_formats())),
                         [](const auto& info) { return test::path_and_format(info); });

TEST_P(RowIndependence, AnyRowsAndThreadsGiveTheBitsOfARowAlone) {
  std::vector<int64_t> counts = {64, 100, 512};
  for (int64_t m = 1; m <= 33; ++m) counts.push_back(m);
  expect_independent({150, 288}, counts);
}

// Longer sums than any kernel takes at once, and more rows.
TEST_P(RowIndependence, LongSumsOfManyRowsGiveTheBitsOfARowAlone) {
  TOO_LONG_FOR_SANITIZERS();
  const bool slow = std::get<0>(GetParam()).name == "scalar";
  expect_independent({slow ? 16 : 72, 2080},
                     slow ? std::vector<int64_t>{5, 81} : std::vector<int64_t>{5, 81, 512, 545});
}

// A few rows in blocks of less than five, with sums of several pieces of widened activations.
TEST_P(RowIndependence, LongSumsOfAFewRowsGiveTheBitsOfARowAlone) {
  TOO_LONG_FOR_SANITIZERS();
  if (std::get<0>(GetParam()).name != "scalar") expect_independent({40, 4160}, {6, 7, 11, 14});
}

// More panels than are multiplied side by side or kept at once, so that each of a team has them elsewhere.
TEST_P(RowIndependence, ManyPanelsGiveTheBitsOfARowAlone) {
  const bool slow = std::get<0>(GetParam()).name == "scalar";
  expect_independent({slow ? 330 : 620, 96}, {1, 16, 33, 81});
}

// Weights of which every thread takes several blocks, the last of a part smaller than the others, so that
// threads take blocks of each other's parts.
TEST_P(RowIndependence, ManyBlocksGiveTheBitsOfARowAlone) {
  TOO_LONG_FOR_SANITIZERS();
  expect_independent({968, 1056}, {1, 9});
}

/// Magnitudes at the ends of what a float can be, by row: huge, tiny, both in a group of 32, zeros of both
/// signs, and numbers that cancel each other.
float extreme(int64_t row, int64_t k, float value) {
  constexpr float kHuge = 3e38f;
  switch (row % 7) {
    case 0:
      return std::copysign(kHuge, value);
    case 1:
      return value * 1e-38f;  // partly subnormal
    case 2:
      return k % 5 == 0 ? std::copysign(kHuge, value) : value * 1e-30f;
    case 3:
      return std::copysign(0.0f, value);
    case 4:
      return (k % 2 == 0 ? 1.0f : -1.0f) * kHuge;
    case 5:
      return std::copysign(std::numeric_limits<float>::denorm_min(), value);
    default:
      return value * std::ldexp(1.0f, static_cast<int>(k % 250) - 125);
  }
}

// Sums may leave what a float can hold here, but then they do so for a row alone too.
TEST_P(RowIndependence, ExtremeActivationsAndWeightsGiveTheBitsOfARowAlone) {
  const Size size{40, 288};
  std::vector<float> ordinary = test::random_floats(size.columns * size.k, 3, 0.05f);
  std::vector<float> wide = ordinary;
  std::vector<float> huge = ordinary;
  for (size_t i = 0; i < ordinary.size(); ++i) {
    wide[i] = to_float(to_bfloat16(std::ldexp(ordinary[i], static_cast<int>(i / 32 % 240) - 120)));
    huge[i] =
        to_float(to_bfloat16(i % 3 == 0 ? 0.0f : std::copysign(i % 2 == 0 ? 3e38f : 1e36f, ordinary[i])));
  }
  for (const std::vector<float>& weights : {ordinary, wide, huge}) {
    expect_independent(size, {2, 4, 5, 8, 16, 17, 21, 35}, weights, extreme);
  }
}

// Atom's: the last inputs have eight bits where the others have four.
class WideInputs : public testing::TestWithParam<MachinePath> {};

INSTANTIATE_TEST_SUITE_P(, WideInputs, testing::ValuesIn(machine_paths()),
                         test::path_name<testing::TestParamInfo<MachinePath>>);

TEST_P(WideInputs, GiveTheBitsOfTheScalarPath) {
  const test::SelectedKernels selected(*GetParam().table);
  ThreadTeam one(1);
  ThreadTeam two(2);
  LinearWorkspace workspace;
  const int64_t columns = 90;
  const int64_t k = 640;
  LinearWeight weight = test::pack(columns, k, test::random_floats(columns * k, 5, 0.05f), {Format::kInt4});
  weight.wide_inputs = 256;
  std::vector<float> x = test::random_inputs(20, k, 6);
  for (size_t i = 0; i < x.size(); ++i) {
    if (static_cast<int64_t>(i) % k >= k - 256) x[i] *= 20.0f;
  }
  for (const int64_t rows : {1, 3, 16, 20}) {
    const std::vector<float> y = multiply(weight, Reading::kInt4W4A4, x.data(), rows, two, workspace);
    const test::SelectedKernels scalar(*machine_paths().front().table);
    const std::vector<float> expected = multiply(weight, Reading::kInt4W4A4, x.data(), rows, one, workspace);
    ASSERT_EQ(std::memcmp(y.data(), expected.data(), y.size() * sizeof(float)), 0) << rows << " rows";
    weight.wide_inputs = 0;
    EXPECT_NE(multiply(weight, Reading::kInt4W4A4, x.data(), rows, one, workspace), expected);
    weight.wide_inputs = 256;
  }
}

}  // namespace
}  // namespace row_independence_test
}  // namespace verbatim
