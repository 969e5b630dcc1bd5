#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "support/machine_paths.h"
#include "support/packed.h"
#include "support/random.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using test::MachinePath;
using test::multiply;

// The promise across machines at its root: with portable kernels a product has the bits of the scalar
// reference on every machine path.
class PortableProducts : public testing::TestWithParam<std::tuple<MachinePath, Format>> {
 protected:
  static constexpr int64_t kColumns = 120;
  static constexpr int64_t kInner = 416;
  static constexpr int64_t kMostRows = 40;

  /// Compares the products of every reading of the format, in batches of several sizes.
  void expect_reference(const std::vector<float>& weights, const std::vector<float>& x) {
    const auto& [path, format] = GetParam();
    for (const Element element : {Element::kBf16, Element::kF16}) {
      if (element == Element::kF16 && format != Format::kBsfp) continue;
      const LinearWeight weight = test::pack(kColumns, kInner, weights, {format}, element);
      for (const Reading reading : readings(format)) {
        const std::vector<float> expected = product(reference_, weight, reading, x, kMostRows);
        for (const int64_t rows : {1, 2, 7, 16, 40}) {
          const std::vector<float> actual = product(*path.table, weight, reading, x, rows);
          for (size_t i = 0; i < actual.size(); ++i) {
            if (std::isnan(expected[i]) && std::isnan(actual[i])) continue;
            ASSERT_EQ(std::bit_cast<uint32_t>(actual[i]), std::bit_cast<uint32_t>(expected[i]))
                << reading_name(reading) << ", " << rows << " rows, " << actual[i] << ", " << expected[i];
          }
        }
      }
    }
  }

 private:
  std::vector<float> product(const KernelTable& table, const LinearWeight& weight, Reading reading,
                             const std::vector<float>& x, int64_t rows) {
    const test::SelectedKernels selected(table);
    return multiply(weight, reading, x.data(), rows, team_, workspace_);
  }

  const KernelTable& reference_ = *test::machine_paths().front().table;
  ThreadTeam team_{2};
  LinearWorkspace workspace_;
};

INSTANTIATE_TEST_SUITE_P(, PortableProducts,
                         testing::Combine(testing::ValuesIn(test::portable_paths()),
                                          testing::ValuesIn(all_formats())),
                         [](const auto& info) { return test::path_and_format(info); });

TEST_P(PortableProducts, HaveTheBitsOfTheReference) {
  expect_reference(test::random_floats(kColumns * kInner, 1, 0.05f),
                   test::random_inputs(kMostRows, kInner, 2));
}

TEST_P(PortableProducts, OfExtremeNumbersHaveTheBitsOfTheReference) {
  std::vector<float> weights = test::random_floats(kColumns * kInner, 3, 0.05f);
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = to_float(to_bfloat16(std::ldexp(weights[i], static_cast<int>(i / 32 % 240) - 120)));
  }
  std::vector<float> x = test::random_inputs(kMostRows, kInner, 4);
  for (size_t i = 0; i < x.size(); ++i) {
    // Rows of the very small, of the very large, and of both.
    const size_t kind = i / kInner % 3;
    if (kind != 0) x[i] *= kind == 1 ? 1e-37f : std::ldexp(1.0f, static_cast<int>(i % 250) - 125);
  }
  expect_reference(weights, x);
}

}  // namespace
}  // namespace verbatim
