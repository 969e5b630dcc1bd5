#include "formats/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/machine_paths.h"
#include "support/packed.h"
#include "support/random.h"

namespace verbatim {
namespace linear_test {
namespace {

using test::machine_paths;
using test::MachinePath;
using test::multiply;

constexpr int64_t kColumns = 150;  // no whole number of panels
constexpr int64_t kInputs = 600;   // no whole number of groups, and more than one block of w4a16
constexpr int64_t kPaddedInputs = 608;
constexpr int64_t kMostRows = 512;

LinearWeight random_weight(std::vector<Format> formats) {
  return test::pack(kColumns, kInputs, test::random_floats(kColumns * kInputs, 1, 0.05f), std::move(formats));
}

std::vector<float> random_inputs() {
  return test::random_inputs(kMostRows, kInputs, 2);
}

class Linear : public testing::TestWithParam<MachinePath> {
 protected:
  test::SelectedKernels selected_{*GetParam().table};
  LinearWorkspace workspace_;
};

INSTANTIATE_TEST_SUITE_P(, Linear, testing::ValuesIn(machine_paths()),
                         test::path_name<testing::TestParamInfo<MachinePath>>);

/// The readings that unpack a format's tiles to BF16 weights give the bits of the bf16 product with these.
void expect_bf16_product(Format format, Reading reading, LinearWorkspace& workspace) {
  const LinearWeight weight = random_weight({format});
  ThreadTeam team(2);
  std::vector<float> unpacked;
  for (int64_t n = 0; n < kColumns; ++n) {
    const std::vector<float> column = test::unpacked_column(weight.stores.front(), reading, n);
    unpacked.insert(unpacked.end(), column.begin(), column.begin() + kInputs);
  }
  const LinearWeight plain = test::pack(kColumns, kInputs, unpacked, {Format::kBf16});
  const std::vector<float> x = random_inputs();
  for (const int64_t rows : {1, 20, 100}) {
    const std::vector<float> y = multiply(weight, reading, x.data(), rows, team, workspace);
    const std::vector<float> expected = multiply(plain, Reading::kFull, x.data(), rows, team, workspace);
    for (int64_t r = 0; r < rows; ++r) {
      const auto of_row = [&](const std::vector<float>& matrix) {
        return std::span(matrix).subspan(static_cast<size_t>(r * plain.padded_columns()), kColumns);
      };
      ASSERT_TRUE(std::ranges::equal(of_row(y), of_row(expected)))
          << reading_name(reading) << ", row " << r << " of " << rows;
    }
  }
}

TEST_P(Linear, W4A16IsTheBf16ProductWithTheUnpackedWeights) {
  expect_bf16_product(Format::kMxfp4, Reading::kMxfp4W4A16, workspace_);
}

TEST_P(Linear, ActivationsInInt8AreCloseToThoseInBf16) {
  ThreadTeam team(2);
  const std::vector<float> x = random_inputs();
  struct Pair {
    Format format;
    Reading a16;
    Reading a8;
  };
  for (const Pair pair :
       {Pair{Format::kMxfp4, Reading::kMxfp4W4A16, Reading::kMxfp4W4A8},
        Pair{Format::kInt8, Reading::kInt8W8A16, Reading::kInt8W8A8},
        Pair{Format::kInt4, Reading::kInt4W4A16, Reading::kInt4W4A8},
        Pair{Format::kInt4Asymmetric, Reading::kInt4AsymmetricW4A16, Reading::kInt4AsymmetricW4A8}}) {
    const LinearWeight weight = random_weight({pair.format});
    const std::vector<float> a16 = multiply(weight, pair.a16, x.data(), 4, team, workspace_);
    const std::vector<float> a8 = multiply(weight, pair.a8, x.data(), 4, team, workspace_);
    double error = 0.0;
    double size = 0.0;
    for (size_t i = 0; i < a16.size(); ++i) {
      error += std::pow(a16[i] - a8[i], 2.0);
      size += std::pow(a16[i], 2.0);
    }
    EXPECT_LT(std::sqrt(error / size), 0.02) << format_name(pair.format);
  }
}

// The residual stream and the sums over it see whole panels.
TEST_P(Linear, ColumnsOfThePaddingAreAsGoodAsZero) {
  ThreadTeam team(2);
  const std::vector<float> x = random_inputs();
  const LinearWeight weight = random_weight(all_formats());
  for (const Format format : all_formats()) {
    for (const Reading reading : readings(format)) {
      const std::vector<float> y = multiply(weight, reading, x.data(), 3, team, workspace_);
      for (int64_t r = 0; r < 3; ++r) {
        for (int64_t n = kColumns; n < weight.padded_columns(); ++n) {
          ASSERT_LT(std::fabs(y[static_cast<size_t>(r * weight.padded_columns() + n)]), 1e-25f)
              << reading_name(reading);
        }
      }
    }
  }
}

}  // namespace
}  // namespace linear_test
}  // namespace verbatim
