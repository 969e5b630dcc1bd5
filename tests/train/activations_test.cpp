#include "activations.h"

#include <gtest/gtest.h>

#include "checkpoint/bad_input.h"
#include "checkpoint/sensitivity.h"
#include "model/sensitivity_origin.h"
#include "prepare/input_statistics.h"
#include "support.h"

namespace verbatim {
namespace {

using test::expect_bad_input;
using test::TemporaryFolder;
using test::TinyModelOptions;

class Activations : public testing::Test {
 protected:
  Checkpoint model(const std::string& name, const TinyModelOptions& options) const {
    write_tiny_llama(folder_.path() / name, options);
    return open_checkpoint(folder_.path() / name);
  }

  TemporaryFolder folder_;
  std::vector<std::vector<int32_t>> samples_ = test::tiny_samples(5, 16);
  train::FisherOptions options_ = test::tiny_options(samples_);
};

TEST_F(Activations, AreTheMeanSquaresOfTheInputsInEveryRow) {
  const Checkpoint checkpoint = model("model", {});
  const std::filesystem::path file = folder_.path() / "a.safetensors";
  options_.output_matrix = true;
  const auto report = write_activations(checkpoint, samples_, file, options_);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->zeros, 0);
  std::vector<int32_t> tokens;
  for (const std::vector<int32_t>& sample : samples_)
    tokens.insert(tokens.end(), sample.begin(), sample.end() - 1);
  ThreadTeam team(1);
  const MatrixInputs inputs = gather_inputs(checkpoint, tokens, {.window = 15}, team);
  const SensitivityFile written = open_sensitivities(file);
  EXPECT_EQ(written.metadata.at(kMeasure), "activation");
  require_same_model(checkpoint, written);
  for (const MatrixSpec& spec : matrix_specs(checkpoint.config)) {
    const MatrixRows rows = sensitivity_rows(checkpoint.config, written, spec);
    std::vector<float> row(static_cast<size_t>(spec.k));
    for (const int64_t column : {int64_t{0}, spec.columns() / 2, spec.columns() - 1}) {
      rows(column, row);
      EXPECT_EQ(row, inputs.at(spec.name).squares) << spec.name;
    }
  }
}

TEST_F(Activations, ThreadsChangeNoByteAndACancelledRunLeavesNothing) {
  const Checkpoint checkpoint = model("model", {});
  ASSERT_TRUE(write_activations(checkpoint, samples_, folder_.path() / "one.safetensors", options_));
  options_.threads = 3;
  ASSERT_TRUE(write_activations(checkpoint, samples_, folder_.path() / "three.safetensors", options_));
  EXPECT_TRUE(test::read_file(folder_.path() / "one.safetensors") ==
              test::read_file(folder_.path() / "three.safetensors"));
  expect_bad_input(
      [&] { write_activations(checkpoint, samples_, folder_.path() / "one.safetensors", options_); },
      {"exists already"});
  options_.cancelled = [] { return true; };
  const std::filesystem::path none = folder_.path() / "none.safetensors";
  EXPECT_FALSE(write_activations(checkpoint, samples_, none, options_));
  EXPECT_FALSE(std::filesystem::exists(none));
}

TEST_F(Activations, NameATensorWhoseInputsAreNoNumbersAndExpertsThatNoRowChose) {
  const Checkpoint broken = model("nan", {.nan_weight = true});
  expect_bad_input([&] { write_activations(broken, samples_, folder_.path() / "n.safetensors", options_); },
                   {"not finite", "tensor"});
  const Checkpoint mixture = model("mixture", {.model_type = "mixtral", .experts = 16, .experts_used = 1});
  const std::vector<std::vector<int32_t>> samples = test::tiny_samples(1, 3);
  const auto report = write_activations(mixture, samples, folder_.path() / "mixture.safetensors",
                                        test::tiny_options(samples));
  ASSERT_TRUE(report);
  EXPECT_GE(report->none.size(), 2u * 14 * 3);  // two rows reach two of 16 experts
}

}  // namespace
}  // namespace verbatim
