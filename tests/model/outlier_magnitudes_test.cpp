#include "model/outlier_magnitudes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "formats/importance.h"
#include "formats/outlier_range.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

class OutlierMagnitudes : public ::testing::Test {
 protected:
  OutlierMagnitudes() {
    test::write_tiny_llama(folder_.path() / "model");
    checkpoint_ = open_checkpoint(folder_.path() / "model");
  }

  /// The number of weights above the magnitudes, and of all.
  std::pair<int64_t, int64_t> count(const std::map<std::string, float>& magnitudes) {
    std::pair<int64_t, int64_t> result;
    for (const MatrixSpec& spec : matrix_specs(checkpoint_.config)) {
      std::vector<float> row(static_cast<size_t>(spec.k));
      for (int64_t column = 0; column < spec.columns(); ++column) {
        matrix_rows(checkpoint_, spec)(column, row);
        for (const float w : row) result.first += std::fabs(w) > magnitudes.at(spec.name);
      }
      result.second += spec.columns() * spec.k;
    }
    return result;
  }

  const test::TemporaryFolder folder_;
  Checkpoint checkpoint_;
};

TEST_F(OutlierMagnitudes, HaveOneRatioAndTheShareOfTheWholeModel) {
  LoadOptions options;
  options.sparse = {.sensitive = 0.0, .outliers = 0.01};
  ThreadTeam team(2);
  const std::map<std::string, float> magnitudes = outlier_magnitudes(checkpoint_, options, {}, team);
  const auto [outliers, all] = count(magnitudes);
  EXPECT_LE(static_cast<double>(outliers), 0.01 * static_cast<double>(all));
  EXPECT_GT(static_cast<double>(outliers), 0.009 * static_cast<double>(all));
  float least = INFINITY;
  float most = 0.0f;
  for (const MatrixSpec& spec : matrix_specs(checkpoint_.config)) {
    const OutlierRange range = outlier_range(spec.columns(), spec.k, matrix_rows(checkpoint_, spec), team);
    least = std::min(least, range.ratio(magnitudes.at(spec.name)));
    most = std::max(most, range.ratio(magnitudes.at(spec.name)));
  }
  EXPECT_NEAR(least, most, 1e-5 * most);
}

TEST_F(OutlierMagnitudes, DoNotDependOnTheTeam) {
  LoadOptions options;
  options.sparse = {.sensitive = 0.0005, .outliers = 0.004};
  ThreadTeam one(1);
  ThreadTeam three(3);
  EXPECT_EQ(outlier_magnitudes(checkpoint_, options, {}, one),
            outlier_magnitudes(checkpoint_, options, {}, three));
}

TEST_F(OutlierMagnitudes, KeepNothingApartForAShareOfNothing) {
  LoadOptions options;
  options.sparse = {.sensitive = 0.0, .outliers = 0.0};
  ThreadTeam team(1);
  EXPECT_EQ(count(outlier_magnitudes(checkpoint_, options, {}, team)).first, 0);
  EXPECT_TRUE(outlier_magnitudes(
                  checkpoint_, options, [] { return true; }, team)
                  .empty());
}

}  // namespace
}  // namespace verbatim
