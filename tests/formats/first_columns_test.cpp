#include <gtest/gtest.h>

#include <cstring>

#include "support/machine_paths.h"
#include "support/packed.h"
#include "support/random.h"

namespace verbatim {
namespace {

using test::machine_paths;
using test::MachinePath;

class FirstColumns : public testing::TestWithParam<std::tuple<MachinePath, Format>> {
 protected:
  test::SelectedKernels selected_{*std::get<0>(GetParam()).table};
  ThreadTeam teams_[2] = {ThreadTeam(1), ThreadTeam(2)};
  LinearWorkspace workspace_;
};

INSTANTIATE_TEST_SUITE_P(, FirstColumns,
                         testing::Combine(testing::ValuesIn(machine_paths()),
                                          testing::ValuesIn(all_formats())),
                         [](const auto& info) { return test::path_and_format(info); });

// A head of fewer tokens must give them the very logits that the whole one gives.
TEST_P(FirstColumns, GiveTheFirstOutputsOfTheWholeProduct) {
  const Format format = std::get<1>(GetParam());
  for (const int64_t k : {64, 200}) {
    constexpr int64_t kColumns = 150;
    std::vector<float> weights = test::random_floats(static_cast<size_t>(kColumns * k), 1, 0.05f);
    // What each format keeps apart from the rest: tiny and large weights, zeros.
    for (size_t i = 0; i < weights.size(); i += 97) weights[i] = i % 2 == 0 ? 0.0f : 1.7f;
    for (size_t i = 50; i < weights.size(); i += 131) weights[i] *= 1e-6f;
    for (const Element element : {Element::kBf16, Element::kF16}) {
      if (element == Element::kF16 && format != Format::kBsfp) continue;
      const LinearWeight whole = test::pack(kColumns, k, weights, {format}, element);
      for (const int64_t columns : {1, 16, 37, 96, 150, 1000}) {
        const LinearWeight first = first_columns(whole, columns);
        EXPECT_EQ(first.columns, std::min(columns, kColumns));
        EXPECT_EQ(first.k, k);
        for (const Reading reading : readings(format)) {
          for (const int64_t rows : {1, 5, 40}) {
            const std::vector<float> x = test::random_inputs(rows, k, 2);
            for (ThreadTeam& team : teams_) {
              const std::vector<float> all = test::multiply(whole, reading, x.data(), rows, team, workspace_);
              const std::vector<float> few = test::multiply(first, reading, x.data(), rows, team, workspace_);
              for (int64_t r = 0; r < rows; ++r) {
                ASSERT_EQ(std::memcmp(few.data() + r * first.padded_columns(),
                                      all.data() + r * whole.padded_columns(),
                                      static_cast<size_t>(first.columns) * sizeof(float)),
                          0)
                    << reading_name(reading) << ", " << columns << " columns, row " << r << " of " << rows;
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace verbatim
