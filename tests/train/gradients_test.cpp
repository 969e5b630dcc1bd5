#include <fcntl.h>
#include <unistd.h>

#include <cmath>
#include <cstring>

#include "checkpoint/sensitivity.h"
#include "support.h"
#include "verbatim/score.h"

namespace verbatim {
namespace {

using test::TemporaryFolder;
using test::TinyModelOptions;

TinyModelOptions tiny(const std::string& family) {
  TinyModelOptions options;
  options.model_type = family;
  options.dtype = DType::kF32;
  options.hidden_size = 64;
  options.intermediate_size = 96;
  options.vocab_size = 128;
  if (family == "gemma2" || family == "gemma3_text" || family == "gpt_oss") options.sliding_window = 5;
  if (family == "gpt2" || family == "opt") options.kv_heads = options.heads;
  if (family == "gpt2" || family == "opt") options.hidden_size = options.heads * options.head_dim;
  return options;
}

/// An F32 tensor of a model's file, whose elements can be changed while the file is mapped.
class FileElement {
 public:
  FileElement(const Checkpoint& checkpoint, const TensorView& tensor, int64_t row, int64_t column) {
    const int64_t element =
        tensor.transposed ? column * tensor.rows() + row : row * tensor.columns() + column;
    const std::byte* const at = tensor.data.data() + element * int64_t{sizeof(float)};
    std::memcpy(&value_, at, sizeof value_);
    for (const auto& file : checkpoint.files) {
      const std::span<const std::byte> bytes = file->bytes();
      if (at < bytes.data() || at >= bytes.data() + bytes.size()) continue;
      place_ = at - bytes.data();
      descriptor_ = open(file->path().c_str(), O_WRONLY);
    }
  }
  ~FileElement() {
    write(value_);
    close(descriptor_);
  }
  FileElement(const FileElement&) = delete;
  FileElement& operator=(const FileElement&) = delete;

  float value() const { return value_; }
  void write(float value) const { EXPECT_EQ(pwrite(descriptor_, &value, sizeof value, place_), 4); }

 private:
  float value_ = 0.0f;
  off_t place_ = 0;
  int descriptor_ = -1;
};

class Gradients : public testing::TestWithParam<std::string> {
 protected:
  Gradients() {
    write_tiny_llama(folder_.path() / "model", tiny(GetParam()));
    checkpoint_ = open_checkpoint(folder_.path() / "model");
  }

  TemporaryFolder folder_;
  Checkpoint checkpoint_;
};

TEST_P(Gradients, TheGraphHasTheLossOfTheEngine) {
  const Model model = Model::load(folder_.path() / "model", {.formats = {"full"}, .threads = 1});
  for (const std::vector<int32_t>& sample : test::tiny_samples(2, 40, 128)) {
    double engine = 0.0;
    // The graph rounds nothing to 16 bits.
    const ScoreOptions options{.cache = {.kind = CacheOptions::Kind::kF32}, .threads = 1};
    for (const ScoredToken& token : score(model, sample, options)) {
      engine -= token.logprob / static_cast<double>(std::ssize(sample) - 1);
    }
    EXPECT_NEAR(test::graph_loss<float>(checkpoint_, sample), engine, 1e-4 * engine);
  }
}

TEST_P(Gradients, SensitivitiesAreTheSquaresOfDifferences) {
  const std::vector<std::vector<int32_t>> samples = test::tiny_samples(2, 12, 128);
  const std::filesystem::path file = folder_.path() / "fisher.safetensors";
  train::FisherOptions options = test::tiny_options(samples);
  options.output_matrix = !checkpoint_.config.tied_embeddings;
  ASSERT_TRUE(train::write_sensitivities(checkpoint_, samples, file, options));
  const SensitivityFile fisher = open_sensitivities(file);
  int64_t compared = 0;
  for (const auto& [name, sensitivities] : fisher.tensors) {
    const TensorView& tensor = checkpoint_.tensors.at(name);
    if (tensor.dtype != DType::kF32) continue;  // the experts of a gpt-oss
    std::vector<float> row(static_cast<size_t>(sensitivities.columns()));
    float largest = 0.0f;
    for (int64_t r = 0; r < sensitivities.rows(); ++r) {
      sensitivities.read_row(r, row);
      largest = std::max(largest, *std::max_element(row.begin(), row.end()));
    }
    for (int64_t i = 0; i < 3; ++i) {
      const int64_t r = (17 + 31 * i) % sensitivities.rows();
      const int64_t c = (5 + 13 * i) % sensitivities.columns();
      sensitivities.read_row(r, row);
      const FileElement element(checkpoint_, tensor, r, c);
      const float above = element.value() + 1e-5f;
      const float below = element.value() - 1e-5f;
      double expected = 0.0;
      for (const std::vector<int32_t>& sample : samples) {
        element.write(above);
        const double more = test::graph_loss<double>(checkpoint_, sample);
        element.write(below);
        const double less = test::graph_loss<double>(checkpoint_, sample);
        const double slope = (more - less) / (static_cast<double>(above) - below);
        expected += slope * slope / static_cast<double>(samples.size());
      }
      EXPECT_NEAR(row[static_cast<size_t>(c)], expected, 1e-3 * expected + 1e-7 * largest)
          << name << " at " << r << ", " << c;
      ++compared;
    }
  }
  EXPECT_GE(compared, 18);
}

INSTANTIATE_TEST_SUITE_P(OfFamilies, Gradients,
                         testing::Values("llama", "mistral", "qwen2", "qwen3", "smollm3", "granite", "olmo2",
                                         "phi3", "gemma2", "gemma3_text", "glm4", "mixtral", "qwen3_moe",
                                         "gpt_oss", "gpt2", "starcoder2", "opt"));

TEST(OutputMatrix, HasTheGradientOfItselfWhereTheEmbeddingIsTied) {
  const TemporaryFolder folder;
  TinyModelOptions options = tiny("llama");
  options.tied = true;
  write_tiny_llama(folder.path() / "model", options);
  const Checkpoint checkpoint = open_checkpoint(folder.path() / "model");
  const std::vector<std::vector<int32_t>> samples = test::tiny_samples(1, 12, 128);
  train::FisherOptions fisher_options = test::tiny_options(samples);
  fisher_options.output_matrix = true;
  const std::filesystem::path file = folder.path() / "fisher.safetensors";
  ASSERT_TRUE(train::write_sensitivities(checkpoint, samples, file, fisher_options));
  const SensitivityFile fisher = open_sensitivities(file);

  ThreadTeam team(1);
  const std::span<const int32_t> tokens(samples[0]);
  std::vector<double> stream = train::embed<double>(checkpoint, {}, tokens.first(11));
  for (int32_t layer = 0; layer < 2; ++layer) {
    const auto weights = train::read_host_weights<double>(checkpoint, layer, 11, team);
    train::graph_maker<double>().layer(checkpoint.config, weights)->forward(stream, stream);
  }
  train::HostWeights<double> weights = train::read_host_weights<double>(checkpoint, -1, 11, team);
  const auto loss = train::graph_maker<double>().loss(checkpoint.config, weights);
  std::vector<float> row(64);
  for (const int32_t r : {tokens[0], tokens[3], 127}) {
    fisher.tensors.at("model.embed_tokens.weight").read_row(r, row);
    double& weight = weights.matrices.at("head").values[static_cast<size_t>(r) * 64 + 9];
    const double before = weight;
    weight = before + 1e-4;
    const double more = loss->loss(stream, tokens.subspan(1));
    weight = before - 1e-4;
    const double slope = (more - loss->loss(stream, tokens.subspan(1))) / 2e-4;
    weight = before;
    EXPECT_NEAR(row[9], slope * slope, 1e-3 * slope * slope);
  }
}

}  // namespace
}  // namespace verbatim
