#include "model/weight_sketch.h"

#include <gtest/gtest.h>

#include "checkpoint/bad_input.h"
#include "checkpoint/safetensors_writer.h"
#include "model/sensitivity_origin.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using test::TemporaryFolder;
using test::TinyModelOptions;

/// A file of sensitivities that names the weights of a model and has no tensors.
SensitivityFile sensitivities_of(const TemporaryFolder& folder, const Checkpoint& checkpoint) {
  return open_sensitivities(
      folder.write("fisher.safetensors", safetensors_header({}, {{kWeightSketch, sketch_text(checkpoint)}})));
}

TEST(WeightSketch, TellsAModelFromAnotherOfTheSameSizes) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "one");
  test::write_tiny_llama(folder.path() / "other", {.seed = 2});
  const Checkpoint one = open_checkpoint(folder.path() / "one");
  const Checkpoint other = open_checkpoint(folder.path() / "other");
  EXPECT_EQ(weight_sketch(one).size(), 256u);
  EXPECT_DOUBLE_EQ(likeness(weight_sketch(one), weight_sketch(one)), 1.0);
  EXPECT_LT(likeness(weight_sketch(one), weight_sketch(other)), 0.7);
  const SensitivityFile file = sensitivities_of(folder, one);
  require_same_model(one, file);
  test::expect_bad_input([&] { require_same_model(other, file); },
                         {"fisher.safetensors", "another model", "same model"});
}

TEST(WeightSketch, IsNearlyThatOfTheSameModelInEightBits) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "one");
  test::write_tiny_gguf(folder.path() / "one.gguf", {.dtype = DType::kQ8_0});
  const Checkpoint gguf = open_checkpoint(folder.path() / "one.gguf");
  require_same_model(gguf, sensitivities_of(folder, open_checkpoint(folder.path() / "one")));
}

TEST(WeightSketch, OfAnotherNumberOfWeightsIsAnothers) {
  EXPECT_EQ(likeness(std::vector<float>{1.0f}, std::vector<float>{1.0f, 1.0f}), 0.0);
  EXPECT_EQ(likeness(std::vector<float>{0.0f}, std::vector<float>{1.0f}), 0.0);
}

}  // namespace
}  // namespace verbatim
