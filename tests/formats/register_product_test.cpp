#include <gtest/gtest.h>

#include <cstring>

#include "support/machine_paths.h"
#include "support/packed.h"
#include "support/random.h"

namespace verbatim {
namespace register_product_test {
namespace {

class RegisterProduct : public testing::TestWithParam<Format> {};

INSTANTIATE_TEST_SUITE_P(, RegisterProduct,
                         testing::Values(Format::kBf16, Format::kMxfp4, Format::kBsfp, Format::kMxbf16,
                                         Format::kInt4, Format::kInt4Asymmetric, Format::kInt8,
                                         Format::kQ8_0),
                         [](const auto& info) {
                           std::string name(format_name(info.param));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

constexpr int64_t kColumns = 7 * kPanelWidth - 3;
constexpr int64_t kInputs = 11 * kInnerStep;

/// Weights most of which lie near each other, with ends that codes cannot express and a panel of zeros.
std::vector<float> weights_with_escapes(int64_t count) {
  std::vector<float> weights = test::random_floats(count, 5, 0.05f);
  for (size_t i = 0; i < weights.size(); i += 997) weights[i] = i % 2 == 0 ? 3e-30f : -1.75f;
  std::fill_n(weights.begin() + 3 * kPanelWidth * kInputs, kPanelWidth * kInputs, 0.0f);
  return weights;
}

// Unpacking in registers, to BF16 or to floats, eight tiles at a time, or one tile ahead, must not change a
// bit beside unpacking to memory and multiplying there.
TEST_P(RegisterProduct, GivesTheBitsOfUnpackedPanels) {
  bool found = false;
  for (const test::MachinePath& path : test::machine_paths()) {
    if (path.table->register_product == nullptr && path.table->fused_product == nullptr &&
        path.table->row_product == nullptr)
      continue;
    found = true;
    KernelTable unpacking = *path.table;
    unpacking.register_product = nullptr;
    unpacking.fused_product = nullptr;
    unpacking.row_product = nullptr;
    const LinearWeight weight =
        test::pack(kColumns, kInputs, weights_with_escapes(kColumns * kInputs), {GetParam()}, Element::kBf16);
    ThreadTeam team(2);
    LinearWorkspace workspace;
    for (const Reading reading : readings(GetParam())) {
      for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 24, 31, 67}) {
        const std::vector<float> x = test::random_inputs(rows, kInputs, 2);
        const auto product = [&](const KernelTable& table) {
          const test::SelectedKernels selected(table);
          return test::multiply(weight, reading, x.data(), rows, team, workspace);
        };
        const std::vector<float> expected = product(unpacking);
        const std::vector<float> result = product(*path.table);
        ASSERT_EQ(std::memcmp(result.data(), expected.data(), expected.size() * sizeof(float)), 0)
            << path.name << ", " << reading_name(reading) << ", " << rows << " rows";
      }
    }
  }
  if (!found) GTEST_SKIP() << "this machine has no path that unpacks tiles by itself";
}

}  // namespace
}  // namespace register_product_test
}  // namespace verbatim
