#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "support/machine_paths.h"
#include "support/packed.h"
#include "support/random.h"

namespace verbatim {
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
  /// Every reading of the format with each number of rows, with 1, 2 and 3 threads, against single rows.
  void expect_independent(Size size, const std::vector<int64_t>& counts) {
    const Format format = std::get<1>(GetParam());
    const std::vector<float> weights = test::random_floats(size.columns * size.k, 1, 0.05f);
    for (const Element element : {Element::kBf16, Element::kF16}) {
      if (element == Element::kF16 && format != Format::kBsfp) continue;
      const LinearWeight weight = test::pack(size.columns, size.k, weights, {format}, element);
      for (const Reading reading : readings(format)) expect_independent(weight, reading, counts);
    }
  }

 private:
  void expect_independent(const LinearWeight& weight, Reading reading, const std::vector<int64_t>& counts) {
    const int64_t most = *std::max_element(counts.begin(), counts.end());
    const std::vector<float> x = test::random_inputs(most, weight.k, 2);
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
  const bool slow = std::get<0>(GetParam()).name == "scalar";
  expect_independent({slow ? 16 : 72, 2080},
                     slow ? std::vector<int64_t>{5, 81} : std::vector<int64_t>{5, 81, 512, 545});
}

}  // namespace
}  // namespace verbatim
