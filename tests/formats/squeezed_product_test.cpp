#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "formats/squeeze.h"
#include "support/machine_paths.h"
#include "support/packed.h"
#include "support/random.h"

namespace verbatim {
namespace squeezed_product_test {
namespace {

using test::machine_paths;
using test::multiply;

constexpr int64_t kColumns = 150;
constexpr int64_t kInputs = 600;  // whole groups of neither format
constexpr int64_t kPaddedInputs = 608;

/// Weights whose outliers are in columns 3 to 5 and in the last: half of the weights there.
std::vector<float> weights_with_gathered_outliers() {
  std::vector<float> weights = test::random_floats(kColumns * kInputs, 1, 0.05f);
  for (const int64_t column : {int64_t{3}, int64_t{4}, int64_t{5}, kColumns - 1}) {
    for (int64_t k = 0; k < kInputs; k += 2) weights[static_cast<size_t>(column * kInputs + k)] *= 50.0f;
  }
  return weights;
}

class SqueezedProduct : public testing::TestWithParam<std::tuple<test::MachinePath, Format>> {
 protected:
  LinearWeight pack(const SparseFractions& sparse) {
    const PackLinearOptions options = {.formats = {std::get<1>(GetParam())}, .sparse = sparse};
    return std::move(pack_linear(kColumns, kInputs, test::rows_of(weights_, kInputs), options, team_).weight);
  }
  Reading reading() const { return readings(std::get<1>(GetParam())).front(); }

  test::SelectedKernels selected_{*std::get<0>(GetParam()).table};
  ThreadTeam team_{2};
  LinearWorkspace workspace_;
  std::vector<float> weights_ = weights_with_gathered_outliers();
};

INSTANTIATE_TEST_SUITE_P(, SqueezedProduct,
                         testing::Combine(testing::ValuesIn(machine_paths()),
                                          testing::Values(Format::kSqueeze3, Format::kSqueeze4)),
                         [](const auto& info) { return test::path_and_format(info); });

TEST_P(SqueezedProduct, IsTheDenseOneAndThenEachColumnsSparseSumInOrder) {
  const LinearWeight weight = pack({.sensitive = 0.0, .outliers = 0.015});
  LinearWeight dense;
  dense.columns = weight.columns;
  dense.k = weight.k;
  const PackedMatrix& matrix = weight.stores.front();
  dense.stores.push_back(test::copy_of(matrix));
  std::memset(dense.stores.front().plane(2).as<uint32_t>(), 0, dense.stores.front().plane(2).size());
  const uint32_t* const starts = matrix.plane(2).as<uint32_t>();
  ASSERT_GT(starts[4] - starts[3], 250u);
  for (const int64_t rows : {1, 2, 3, 17}) {
    const std::vector<float> x = test::random_inputs(rows, kInputs, 2);
    std::vector<float> expected = multiply(dense, reading(), x.data(), rows, team_, workspace_);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t n = 0; n < kColumns; ++n) {
        if (starts[n] == starts[n + 1]) continue;
        float sum = 0.0f;
        for (uint32_t i = starts[n]; i < starts[n + 1]; ++i) {
          sum += to_float(matrix.plane(4).as<BFloat16>()[i]) *
                 x[static_cast<size_t>(r * kPaddedInputs + matrix.plane(3).as<uint16_t>()[i])];
        }
        expected[static_cast<size_t>(r * weight.padded_columns() + n)] += sum;
      }
    }
    // Forty threads are more than the ranges of columns are cut for.
    for (const int threads : {1, 2, 5, 40}) {
      ThreadTeam team(threads);
      const std::vector<float> y = multiply(weight, reading(), x.data(), rows, team, workspace_);
      ASSERT_TRUE(std::ranges::equal(y, expected)) << rows << " rows, " << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace squeezed_product_test
}  // namespace verbatim
