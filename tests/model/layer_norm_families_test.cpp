#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "kv/dense.h"
#include "support/engine_support.h"
#include "support/layer_norm_families.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace layer_norm_families_test {
namespace {

using test::NamedTensor;
using test::TinyModelOptions;

using Vector = std::vector<double>;

/// A forward pass of a tiny model of these families in double precision, written after their definitions and
/// with nothing of the library. What a model has can be left out, to see that it matters.
class Reference {
 public:
  bool means = true;      ///< whether norms take the mean away
  bool biases = true;     ///< whether biases are added
  bool positions = true;  ///< whether positions are told, learned or by rotation
  bool activation = true;

  explicit Reference(const TinyModelOptions& options) : options_(options) {
    for (const NamedTensor& tensor : test::tiny_tensors(options)) {
      tensors_[tensor.name] = test::with_rows_of_outputs(tensor);
    }
    const bool gpt2 = options.model_type == "gpt2";
    const bool opt = options.model_type == "opt";
    begin_ = gpt2 ? "" : opt ? "model.decoder." : "model.";
    first_norm_ = gpt2 ? "ln_1" : opt ? "self_attn_layer_norm" : "input_layernorm";
    second_norm_ = gpt2 ? "ln_2" : opt ? "final_layer_norm" : "post_attention_layernorm";
    last_norm_ = gpt2 ? "ln_f" : opt ? "final_layer_norm" : "norm";
    output_ = gpt2 ? "attn.c_proj" : opt ? "self_attn.out_proj" : "self_attn.o_proj";
    up_ = opt ? "fc1" : "mlp.c_fc";
    down_ = opt ? "fc2" : "mlp.c_proj";
  }

  /// The logits of every token.
  std::vector<Vector> logits(const std::vector<int32_t>& tokens) const {
    const bool gpt2 = options_.model_type == "gpt2";
    const bool opt = options_.model_type == "opt";
    const std::string embedding = gpt2 ? "wte" : begin_ + "embed_tokens";
    std::vector<Vector> stream;
    for (size_t p = 0; p < tokens.size(); ++p) {
      stream.push_back(row(embedding, tokens[p]));
      if (!positions || (!gpt2 && !opt)) continue;
      const Vector learned = gpt2 ? row("wpe", static_cast<int64_t>(p))
                                  : row(begin_ + "embed_positions", static_cast<int64_t>(p) + 2);
      add(stream.back(), learned);
    }
    for (int32_t i = 0; i < options_.layers; ++i) {
      const std::string layer = gpt2 ? fmt::format("h.{}.", i) : fmt::format("{}layers.{}.", begin_, i);
      attend(layer, stream);
      for (Vector& x : stream) {
        Vector inner = linear(layer + up_, norm(layer + second_norm_, x));
        for (double& value : inner) value = activated(value);
        add(x, linear(layer + down_, inner));
      }
    }
    std::vector<Vector> result;
    for (const Vector& x : stream) {
      result.push_back(product(options_.tied ? embedding : "lm_head", norm(begin_ + last_norm_, x)));
    }
    return result;
  }

 private:
  const NamedTensor& tensor(const std::string& name) const { return tensors_.at(name); }

  Vector row(const std::string& name, int64_t index) const {
    const NamedTensor& matrix = tensor(name + ".weight");
    const int64_t width = matrix.shape[1];
    return {matrix.values.begin() + index * width, matrix.values.begin() + (index + 1) * width};
  }

  static void add(Vector& to, const Vector& more) {
    for (size_t i = 0; i < to.size(); ++i) to[i] += more[i];
  }

  Vector product(const std::string& name, const Vector& x) const {
    const NamedTensor& matrix = tensor(name + ".weight");
    Vector y(static_cast<size_t>(matrix.shape[0]));
    for (size_t r = 0; r < y.size(); ++r) {
      for (size_t i = 0; i < x.size(); ++i) y[r] += double{matrix.values[r * x.size() + i]} * x[i];
    }
    return y;
  }

  Vector linear(const std::string& name, const Vector& x) const {
    Vector y = product(name, x);
    const std::vector<float>& bias = tensor(name + ".bias").values;
    if (biases) add(y, Vector(bias.begin(), bias.end()));
    return y;
  }

  Vector norm(const std::string& name, const Vector& x) const {
    double mean = 0.0;
    if (means) {
      for (const double value : x) mean += value / static_cast<double>(x.size());
    }
    double variance = 0.0;
    for (const double value : x) variance += (value - mean) * (value - mean) / static_cast<double>(x.size());
    Vector y(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      y[i] = (x[i] - mean) / std::sqrt(variance + 1e-5) * double{tensor(name + ".weight").values[i]};
      if (biases) y[i] += double{tensor(name + ".bias").values[i]};
    }
    return y;
  }

  double activated(double x) const {
    if (!activation) return x;
    if (options_.model_type == "opt") return std::max(x, 0.0);
    return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
  }

  void rotate(double* head, size_t position) const {
    const int32_t half = options_.head_dim / 2;
    for (int32_t i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(position) * std::pow(double{options_.rope_theta}, -2.0 * i / options_.head_dim);
      const double first = head[i];
      const double second = head[half + i];
      head[i] = first * std::cos(angle) - second * std::sin(angle);
      head[half + i] = second * std::cos(angle) + first * std::sin(angle);
    }
  }

  void attend(const std::string& layer, std::vector<Vector>& stream) const {
    const bool starcoder2 = options_.model_type == "starcoder2";
    const int32_t heads = options_.heads;
    const int32_t kv_heads = starcoder2 ? options_.kv_heads : heads;
    const int32_t size = starcoder2 ? options_.head_dim : options_.hidden_size / heads;
    std::vector<Vector> queries;
    std::vector<Vector> keys;
    std::vector<Vector> values;
    for (size_t p = 0; p < stream.size(); ++p) {
      const Vector x = norm(layer + first_norm_, stream[p]);
      if (options_.model_type == "gpt2") {
        const Vector all = linear(layer + "attn.c_attn", x);
        const auto third = static_cast<std::ptrdiff_t>(all.size() / 3);
        queries.emplace_back(all.begin(), all.begin() + third);
        keys.emplace_back(all.begin() + third, all.begin() + 2 * third);
        values.emplace_back(all.begin() + 2 * third, all.end());
      } else {
        queries.push_back(linear(layer + "self_attn.q_proj", x));
        keys.push_back(linear(layer + "self_attn.k_proj", x));
        values.push_back(linear(layer + "self_attn.v_proj", x));
      }
      if (!starcoder2 || !positions) continue;
      for (int32_t h = 0; h < heads; ++h) rotate(queries.back().data() + h * size, p);
      for (int32_t h = 0; h < kv_heads; ++h) rotate(keys.back().data() + h * size, p);
    }
    for (size_t p = 0; p < stream.size(); ++p) {
      Vector out(queries[p].size());
      const size_t window = static_cast<size_t>(options_.sliding_window.value_or(1 << 20));
      const size_t first = p + 1 > window ? p + 1 - window : 0;
      for (int32_t h = 0; h < heads; ++h) {
        const int32_t kv = h / (heads / kv_heads);
        Vector shares;
        double sum = 0.0;
        for (size_t q = first; q <= p; ++q) {
          double score = 0.0;
          for (int32_t d = 0; d < size; ++d) score += queries[p][h * size + d] * keys[q][kv * size + d];
          shares.push_back(std::exp(score / std::sqrt(double{static_cast<double>(size)})));
          sum += shares.back();
        }
        for (size_t q = first; q <= p; ++q) {
          for (int32_t d = 0; d < size; ++d) {
            out[h * size + d] += shares[q - first] / sum * values[q][kv * size + d];
          }
        }
      }
      add(stream[p], linear(layer + output_, out));
    }
  }

  TinyModelOptions options_;
  std::map<std::string, NamedTensor> tensors_;
  std::string begin_;
  std::string first_norm_;
  std::string second_norm_;
  std::string last_norm_;
  std::string output_;
  std::string up_;
  std::string down_;
};

/// Sizes that are no whole number of steps of the kernels.
TinyModelOptions tiny(const std::string& family, bool tied = false) {
  TinyModelOptions options{.model_type = family,
                           .dtype = DType::kF32,
                           .hidden_size = 72,
                           .intermediate_size = 172,
                           .heads = 6,
                           .kv_heads = 2,
                           .head_dim = 12,
                           .vocab_size = 250,
                           .context = 64,
                           .tied = tied};
  if (family == "starcoder2") options.sliding_window = 20;
  return options;
}

std::vector<int32_t> some_tokens() {
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 40; ++i) tokens.push_back(i * i * 37 % 250);
  return tokens;
}

float largest_difference(const std::vector<float>& logits, const std::vector<Vector>& expected) {
  float largest = 0.0f;
  size_t i = 0;
  for (const Vector& row : expected) {
    for (const double value : row) {
      largest = std::max(largest, std::abs(logits.at(i++) - static_cast<float>(value)));
    }
  }
  return largest;
}

class LayerNormFamilies : public testing::TestWithParam<const char*> {
 protected:
  test::TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(, LayerNormFamilies, testing::Values("gpt2", "starcoder2", "opt"),
                         [](const auto& info) { return std::string(info.param); });

// Queries, keys, values and probabilities are in BF16. Logits are between -4 and 4.
TEST_P(LayerNormFamilies, ComputeWhatTheyAreDefinedToCompute) {
  ThreadTeam team(2);
  for (const bool tied : {false, true}) {
    const TinyModelOptions options = tiny(GetParam(), tied);
    test::write_tiny_llama(folder_.path() / "model", options);
    const std::vector<float> logits = test::all_logits(test::load_decoder(folder_.path() / "model"),
                                                       some_tokens(), 512, Reading::kFull, team);
    const Reference reference(options);
    EXPECT_LT(largest_difference(logits, reference.logits(some_tokens())), 0.1f);
    for (bool Reference::*const part :
         {&Reference::means, &Reference::biases, &Reference::positions, &Reference::activation}) {
      Reference without(options);
      without.*part = false;
      EXPECT_GT(largest_difference(logits, without.logits(some_tokens())), 0.5f);
    }
  }
}

// Passes that are timed go beyond, and drafts of a model with a shorter context than the target's.
TEST_P(LayerNormFamilies, TakeTheLastLearnedPositionForThoseBeyondIt) {
  const TinyModelOptions options = tiny(GetParam());
  test::write_tiny_llama(folder_.path() / "model", options);
  std::vector<NamedTensor> tensors = test::tiny_tensors(options);
  for (NamedTensor& tensor : tensors) {  // attention adds nothing: the position alone makes a difference
    const bool output = tensor.name.find("attn.c_proj") != std::string::npos ||
                        tensor.name.find("out_proj") != std::string::npos ||
                        tensor.name.find("o_proj") != std::string::npos;
    if (output) std::fill(tensor.values.begin(), tensor.values.end(), 0.0f);
  }
  folder_.write("model/model.safetensors", test::safetensors_file(tensors, options.dtype));
  const Decoder decoder = test::load_decoder(folder_.path() / "model");
  ThreadTeam team(1);
  std::vector<std::vector<float>> logits;
  for (const int32_t position : {62, 63, 64, 1000}) {
    DenseCache cache(decoder.cache_shape(), 1024);
    KvCache* const caches[] = {&cache};
    DecoderWorkspace workspace;
    const Row row{0, position, 1};
    const Matrix<const float> result = decoder.forward({&row, 1}, Reading::kFull, caches, 0, workspace, team);
    logits.emplace_back(result.row(0), result.row(0) + result.columns);
  }
  EXPECT_EQ(logits[0] == logits[1], !decoder.config().learned_positions);
  EXPECT_EQ(logits[2], logits[1]);
  EXPECT_EQ(logits[3], logits[1]);
}

// What such a model drafts for itself, in sequences up to the end of its context and beyond it in its costs.
TEST_P(LayerNormFamilies, SayTheSameWithDraftsAsWithoutThem) {
  test::write_tiny_llama(folder_.path() / "model", tiny(GetParam()));
  std::string words = R"({"x": 249)";
  for (int token = 0; token < 249; ++token) words += fmt::format(R"(, "x{}": {})", token, token);
  folder_.write("model/vocab.json", words + "}");
  folder_.write("model/merges.txt", "#version: 0.2\n");
  const Model model = test::load_model(folder_.path() / "model");
  EXPECT_EQ(model.context(), 64);
  const std::vector<int32_t> prompt = {1, 17, 93, 112, 17, 93, 60, 5, 17, 93};
  GenerateOptions options;
  options.max_tokens = 100;
  options.ignore_eos = true;
  const auto tokens = [&](const char* recipe) {
    Session session(model, 1000, 2);
    return session.generate(prompt, options, load_recipe(recipe)).tokens;
  };
  const std::vector<int32_t> plain = tokens("plain");
  EXPECT_EQ(plain.size(), 54u);
  for (const char* recipe : {"auto", "ml-specqd", "ngram", "early-exit"})
    EXPECT_EQ(tokens(recipe), plain) << recipe;
}

TEST(Gpt2Checkpoint, IsTheSameWithAndWithoutThePrefixOfTheBaseModel) {
  const test::TemporaryFolder folder;
  ThreadTeam team(2);
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const char* family : {"gpt2", "opt"}) {
      TinyModelOptions options = tiny(family, true);
      options.dtype = dtype;
      test::write_tiny_llama(folder.path() / "model", options);
      std::vector<NamedTensor> tensors = test::tiny_tensors(options);
      const auto logits = [&] {
        return test::all_logits(test::load_decoder(folder.path() / "model"), some_tokens(), 512,
                                Reading::kFull, team);
      };
      const std::vector<float> expected = logits();
      for (NamedTensor& tensor : tensors) {
        tensor.name = options.model_type == "gpt2" ? "transformer." + tensor.name : tensor.name.substr(6);
      }
      if (options.model_type == "gpt2") {  // files have these masks, which are no weights
        tensors.push_back({"transformer.h.0.attn.bias", {1, 1, 4, 4}, std::vector<float>(16)});
        tensors.push_back({"transformer.h.0.attn.masked_bias", {1}, {-1e4f}});
      }
      folder.write("model/model.safetensors", test::safetensors_file(tensors, dtype));
      EXPECT_EQ(logits(), expected) << family;
    }
  }
}

TEST(Starcoder2Checkpoint, WithoutBiasesIsTheOneWhoseBiasesAreZero) {
  const test::TemporaryFolder folder;
  ThreadTeam team(2);
  const TinyModelOptions options = tiny("starcoder2");
  std::vector<NamedTensor> tensors = test::tiny_tensors(options);
  const auto of_matrix = [](const NamedTensor& tensor) {
    return tensor.name.ends_with(".bias") && tensor.name.find("norm") == std::string::npos;
  };
  nlohmann::json config = test::layer_norm_config(options);
  std::vector<std::vector<float>> logits;
  for (const bool biases : {true, false}) {
    config["use_bias"] = biases;
    for (NamedTensor& tensor : tensors) {
      if (of_matrix(tensor)) std::fill(tensor.values.begin(), tensor.values.end(), 0.0f);
    }
    if (!biases) std::erase_if(tensors, of_matrix);
    folder.write("config.json", config.dump());
    folder.write("model.safetensors", test::safetensors_file(tensors, options.dtype));
    const Decoder decoder = test::load_decoder(folder.path());
    EXPECT_EQ(decoder.config().mlp_bias, biases);
    logits.push_back(test::all_logits(decoder, some_tokens(), 512, Reading::kFull, team));
  }
  EXPECT_EQ(logits[0], logits[1]);
}

}  // namespace
}  // namespace layer_norm_families_test
}  // namespace verbatim
