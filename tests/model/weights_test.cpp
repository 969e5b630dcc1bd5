#include "model/weights.h"

#include <gtest/gtest.h>

#include <fstream>

#include "model/decoder.h"
#include "support/engine_support.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using test::NamedTensor;
using test::TinyModelOptions;

constexpr int32_t kRotated = 16;  // of the 32 elements of a head

TinyModelOptions glm4() {
  return {.model_type = "glm4"};
}

bool rotates(const std::string& name) {
  return name.find("q_proj") != std::string::npos || name.find("k_proj") != std::string::npos;
}

/// Writes a GLM-4 whose query and key rows are those of `halves` brought into that family's order.
void write_interleaved(const std::filesystem::path& folder, std::vector<NamedTensor> halves) {
  test::write_tiny_llama(folder, glm4());
  for (NamedTensor& tensor : halves) {
    if (rotates(tensor.name)) tensor.values = test::interleave_rows(tensor, glm4().head_dim, kRotated);
  }
  std::ofstream(folder / "model.safetensors", std::ios::binary)
      << test::safetensors_file(halves, glm4().dtype);
}

/// Opens a GLM-4 as a model whose query and key rows are in the engine's order already.
Checkpoint open_as_halves(const std::filesystem::path& folder) {
  Checkpoint checkpoint = open_checkpoint(folder);
  EXPECT_TRUE(checkpoint.config.rope_interleaved);
  checkpoint.config.rope_interleaved = false;
  return checkpoint;
}

std::vector<float> logits_of(const Checkpoint& checkpoint, const LoadOptions& options, Reading reading) {
  ThreadTeam team(2);
  std::vector<std::string> not_finite;
  const Decoder decoder(checkpoint.config, pack_weights(checkpoint, options, team, not_finite));
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 40; ++i) tokens.push_back(i * 37 % 256);
  return test::all_logits(decoder, tokens, 512, reading, team);
}

TEST(Weights, NeighboursThatRotateInAPartOfAHeadAreBroughtIntoTwoHalves) {
  const test::TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "halves", glm4());
  write_interleaved(folder.path() / "neighbours", test::tiny_tensors(glm4()));
  const Checkpoint neighbours = open_checkpoint(folder.path() / "neighbours");
  ASSERT_EQ(neighbours.config.rotary_dim, kRotated);
  const std::vector<float> expected = logits_of(open_as_halves(folder.path() / "halves"), {}, Reading::kFull);
  EXPECT_EQ(logits_of(neighbours, {}, Reading::kFull), expected);
  // In the order of the file it is another model.
  EXPECT_NE(logits_of(open_as_halves(folder.path() / "neighbours"), {}, Reading::kFull), expected);
}

TEST(Weights, SensitivitiesAreInTheOrderOfHuggingFaceModels) {
  const test::TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "halves", glm4());
  write_interleaved(folder.path() / "neighbours", test::tiny_tensors(glm4()));
  std::vector<NamedTensor> sensitivities = test::tiny_tensors({.model_type = "glm4", .seed = 7});
  for (NamedTensor& tensor : sensitivities) {
    for (float& value : tensor.values) value *= value;
  }
  folder.write("halves.safetensors", test::safetensors_file(sensitivities, DType::kF32));
  for (NamedTensor& tensor : sensitivities) {
    if (rotates(tensor.name)) tensor.values = test::interleave_rows(tensor, glm4().head_dim, kRotated);
  }
  folder.write("neighbours.safetensors", test::safetensors_file(sensitivities, DType::kF32));
  const SensitivityFile halves = open_sensitivities(folder.path() / "halves.safetensors");
  const SensitivityFile neighbours = open_sensitivities(folder.path() / "neighbours.safetensors");
  LoadOptions options;
  options.formats = {Format::kSqueeze3};
  options.sensitivities = &halves;
  const Reading reading = readings(Format::kSqueeze3).front();
  const std::vector<float> expected = logits_of(open_as_halves(folder.path() / "halves"), options, reading);
  EXPECT_NE(logits_of(open_checkpoint(folder.path() / "neighbours"), options, reading), expected);
  options.sensitivities = &neighbours;
  EXPECT_EQ(logits_of(open_checkpoint(folder.path() / "neighbours"), options, reading), expected);
}

}  // namespace
}  // namespace verbatim
