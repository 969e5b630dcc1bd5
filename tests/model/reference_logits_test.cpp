#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "support/engine_support.h"
#include "support/machine_paths.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using test::machine_paths;
using test::MachinePath;

double cosine(const float* a, const float* b, size_t count) {
  double ab = 0.0;
  double aa = 0.0;
  double bb = 0.0;
  for (size_t i = 0; i < count; ++i) {
    ab += static_cast<double>(a[i]) * b[i];
    aa += static_cast<double>(a[i]) * a[i];
    bb += static_cast<double>(b[i]) * b[i];
  }
  return ab / std::sqrt(aa * bb);
}

class ReferenceLogits : public testing::TestWithParam<MachinePath> {
 protected:
  /// Compares a model with logits that another implementation computed in FP32 without rounding activations.
  void compare(const std::string& model, const std::filesystem::path& folder) {
    const Decoder decoder = test::load_decoder(folder);
    ThreadTeam team(2);
    for (const int i : {0, 1, 2}) {
      const std::string name = model + "_" + std::to_string(i);
      const auto reference =
          nlohmann::json::parse(test::read_file(test::reference_logits() / (name + ".json")));
      const std::string bytes = test::read_file(test::reference_logits() / (name + ".f32"));
      std::vector<float> expected(bytes.size() / sizeof(float));
      std::memcpy(expected.data(), bytes.data(), bytes.size());
      const std::vector<int32_t> ids = reference["ids"];
      const std::vector<float> logits = test::all_logits(decoder, ids, 512, Reading::kFull, team);
      ASSERT_EQ(logits.size(), expected.size());
      const size_t vocabulary = expected.size() / ids.size();
      for (size_t p = 0; p < ids.size(); ++p) {
        const float* const actual_row = logits.data() + p * vocabulary;
        const float* const expected_row = expected.data() + p * vocabulary;
        EXPECT_GE(cosine(actual_row, expected_row, vocabulary), 0.9999) << name << " position " << p;
        std::vector<float> sorted(expected_row, expected_row + vocabulary);
        std::nth_element(sorted.begin(), sorted.begin() + 1, sorted.end(), std::greater<>());
        const float gap = *std::max_element(sorted.begin(), sorted.end()) - sorted[1];
        if (gap <= 0.05f) continue;
        EXPECT_EQ(std::max_element(actual_row, actual_row + vocabulary) - actual_row,
                  std::max_element(expected_row, expected_row + vocabulary) - expected_row)
            << name << " position " << p;
      }
    }
  }

  test::SelectedKernels selected_{*GetParam().table};
};

INSTANTIATE_TEST_SUITE_P(, ReferenceLogits, testing::ValuesIn(machine_paths()),
                         test::path_name<testing::TestParamInfo<MachinePath>>);

TEST_P(ReferenceLogits, TheDefaultModelAgreesWithAnFp32Implementation) {
  compare("target", test::default_model());
}

TEST_P(ReferenceLogits, TheDraftModelAgreesWithAnFp32Implementation) {
  compare("draft", test::draft_model());
}

}  // namespace
}  // namespace verbatim
