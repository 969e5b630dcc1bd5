#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "formats/tile_codes.h"
#include "support/machine_paths.h"
#include "support/packed.h"
#include "support/random.h"

namespace verbatim {
namespace scaled_late_test {
namespace {

using test::machine_paths;
using test::MachinePath;

// The readings that are scaled after the product, byte for byte: for every scale group, the product of a row
// with the codes alone, from zero, in the order of the machine's BF16 product; then y += scale · (product -
// zero · Σ x), group after group.

constexpr int64_t kColumns = 7 * kPanelWidth;                  // panels that are not taken side by side
constexpr int64_t kInputs = 9 * kScaleGroup + 3 * kInnerStep;  // and a last group that is not full
constexpr int64_t kMostRows = 97;

/// What stands in the place of a weight before scaling.
float code_of(const PackedMatrix& store, int64_t column, int64_t k) {
  if (store.format == Format::kInt8) {
    const int64_t place = column / kPanelWidth * store.k * kPanelWidth + k / 4 * 64 +
                          column % kPanelWidth * 4 + kQuadOrder[k % 4];
    return store.plane(0).as<const int8_t>()[place];
  }
  const float code = get_code(store.plane(0).as<const uint8_t>(), store, column, k);
  return store.format == Format::kInt4 ? code - 8.0f : code;
}

/// A panel of codes in BF16.
std::vector<BFloat16> panel_of_codes(const PackedMatrix& store, int64_t panel) {
  std::vector<BFloat16> codes(static_cast<size_t>(store.k * kPanelWidth));
  for (int64_t k = 0; k < store.k; ++k) {
    for (int64_t i = 0; i < kPanelWidth; ++i) {
      codes[static_cast<size_t>((k / 2 * kPanelWidth + i) * 2 + k % 2)] =
          to_bfloat16(code_of(store, panel * kPanelWidth + i, k));
    }
  }
  return codes;
}

/// [rows][columns], by the definition.
std::vector<float> plainly_scaled(const PackedMatrix& store, const std::vector<float>& x, int64_t rows) {
  std::vector<BFloat16> a(x.size());
  for (size_t i = 0; i < x.size(); ++i) a[i] = to_bfloat16(x[i]);
  const int64_t group = store.format == Format::kInt8 ? kInnerStep : kScaleGroup;
  std::vector<float> y(static_cast<size_t>(rows * store.columns));
  for (int64_t panel = 0; panel < store.panels(); ++panel) {
    const std::vector<BFloat16> codes = panel_of_codes(store, panel);
    for (int64_t r = 0; r < rows; ++r) {
      const BFloat16* const row = a.data() + r * store.k;
      for (int64_t begin = 0; begin < store.k; begin += group) {
        const int64_t count = std::min(group, store.k - begin);
        float products[kPanelWidth];
        kernels().panels_bf16({.a = row + begin,
                               .a_stride = store.k,
                               .rows = 1,
                               .panels = codes.data() + begin * kPanelWidth,
                               .panel_stride = store.k * kPanelWidth,
                               .panel_count = 1,
                               .k = count,
                               .c = products,
                               .c_stride = kPanelWidth,
                               .accumulate = false});
        float sum = 0.0f;
        for (int64_t k = 0; k < count; ++k) sum += to_float(row[begin + k]);
        for (int64_t i = 0; i < kPanelWidth; ++i) {
          const int64_t column = panel * kPanelWidth + i;
          const int64_t index = store.format == Format::kInt8 ? tile_scale_index(store, column, begin)
                                                              : scale_index(store, column, begin);
          float product = products[i];
          if (store.format == Format::kInt4Asymmetric) {
            product -= static_cast<float>(store.plane(2).as<const uint8_t>()[index]) * sum;
          }
          const float scaled = to_float(store.plane(1).as<const Float16>()[index]) * product;
          float& result = y[static_cast<size_t>(r * store.columns + column)];
          result = begin == 0 ? scaled : result + scaled;
        }
      }
    }
  }
  return y;
}

class ScaledLate : public testing::TestWithParam<std::tuple<MachinePath, Format>> {
 protected:
  test::SelectedKernels selected_{*std::get<0>(GetParam()).table};
};

INSTANTIATE_TEST_SUITE_P(, ScaledLate,
                         testing::Combine(testing::ValuesIn(machine_paths()),
                                          testing::Values(Format::kInt8, Format::kInt4,
                                                          Format::kInt4Asymmetric)),
                         [](const auto& info) { return test::path_and_format(info); });

TEST_P(ScaledLate, ProductsOfGroupsAreScaledAndAddedInOrder) {
  const Format format = std::get<1>(GetParam());
  const LinearWeight weight =
      test::pack(kColumns, kInputs, test::random_floats(kColumns * kInputs, 1, 0.05f), {format});
  if (format == Format::kInt8) {  // -128, which packing never makes, but a file may hold
    int8_t* const codes = weight.stores.front().plane(0).as<int8_t>();
    for (int64_t i = 0; i < kColumns * kInputs; i += 37) codes[i] = -128;
  }
  const std::vector<float> x = test::random_inputs(kMostRows, kInputs, 2);
  const std::vector<float> expected = plainly_scaled(weight.stores.front(), x, kMostRows);
  LinearWorkspace workspace;
  for (const int members : {1, 2}) {
    ThreadTeam team(members);
    for (const int64_t rows : {1, 2, 5, 16, 17, 33, 64, 80, 97}) {
      const std::vector<float> y =
          test::multiply(weight, readings(format).front(), x.data(), rows, team, workspace);
      ASSERT_EQ(std::memcmp(y.data(), expected.data(), y.size() * sizeof(float)), 0)
          << rows << " rows, " << members << " threads";
    }
  }
}

}  // namespace
}  // namespace scaled_late_test
}  // namespace verbatim
