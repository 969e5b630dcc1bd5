#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>

#include "container/load.h"
#include "container/pack.h"
#include "kernels/dispatch.h"
#include "kv/dense.h"
#include "model/work.h"
#include "support/engine_support.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using test::NamedTensor;
using test::TinyModelOptions;

/// A model of one layer whose attention adds nothing, so that an expert's input follows from the token alone.
TinyModelOptions one_layer(const std::string& type, bool normalized = true) {
  return {.model_type = type,
          .dtype = DType::kF32,
          .hidden_size = 72,
          .intermediate_size = 84,
          .layers = 1,
          .experts = 7,
          .experts_used = 3,
          .normalized_experts = normalized};
}

/// Writes the model after a change of its tensors. Attention adds nothing.
template <typename Change>
Decoder decoder_of(const TinyModelOptions& options, Change&& change) {
  const test::TemporaryFolder folder;
  test::write_tiny_llama(folder.path(), options);
  std::vector<NamedTensor> tensors = test::tiny_tensors(options);
  for (NamedTensor& tensor : tensors) {
    if (tensor.name.ends_with("o_proj.weight")) std::fill(tensor.values.begin(), tensor.values.end(), 0.0f);
    change(tensor);
  }
  std::ofstream(folder.path() / "model.safetensors", std::ios::binary)
      << test::safetensors_file(tensors, options.dtype);
  return test::load_decoder(folder.path());
}

bool is_router(const NamedTensor& tensor) {
  return tensor.name.ends_with("mlp.gate.weight") || tensor.name.ends_with("block_sparse_moe.gate.weight");
}

/// The normed hidden states of tokens, all in one pass of `threads` threads. `inputs` sees the matrices.
std::vector<std::vector<float>> states_of(const Decoder& decoder, const std::vector<int32_t>& tokens,
                                          int threads = 1, const decltype(PassKind::inputs) inputs = nullptr,
                                          int32_t experts = 0) {
  ThreadTeam team(threads);
  DenseCache cache(decoder.cache_shape(), std::ssize(tokens));
  KvCache* const caches[] = {&cache};
  DecoderWorkspace workspace;
  std::vector<Row> rows;
  for (size_t i = 0; i < tokens.size(); ++i) rows.push_back({0, static_cast<int32_t>(i), tokens[i]});
  PassKind kind(Reading::kFull);
  kind.hidden_states = true;
  kind.inputs = inputs;
  kind.experts = experts;
  const Matrix<const float> states = decoder.forward(rows, kind, caches, 0, workspace, team);
  std::vector<std::vector<float>> result;
  for (int64_t r = 0; r < states.rows; ++r) {
    result.emplace_back(states.row(r), states.row(r) + states.columns);
  }
  return result;
}

/// The state of a token in such a model, computed from its definition: every product by the functions of the
/// library, the mixture by hand, expert after expert.
std::vector<float> expected_state(const Decoder& decoder, int32_t token) {
  const ModelConfig& config = decoder.config();
  const LayerWeights& layer = decoder.weights().layers.front();
  const KernelTable& kernel = kernels();
  ThreadTeam team(1);
  LinearWorkspace workspace;
  const int64_t width = round_up<int64_t>(config.hidden_size, kInnerStep);
  const auto size = static_cast<size_t>(width);
  Buffer<float> hidden(size);
  Buffer<float> normed(size);
  decoder.weights().embedding.read_row(token, {hidden.data(), static_cast<size_t>(config.hidden_size)});
  kernel.rms_norm(hidden.data(), layer.mlp_norm.data(), width, config.hidden_size, config.rms_norm_epsilon,
                  normed.data());
  std::vector<std::pair<float, int32_t>> best;  // the negative score, the expert
  double all = 0.0;
  for (int32_t e = 0; e < config.experts.count; ++e) {
    float score = 0.0f;
    for (int32_t i = 0; i < config.hidden_size; ++i) {
      score = std::fma(normed[static_cast<size_t>(i)],
                       layer.router[static_cast<size_t>(e * config.hidden_size + i)], score);
    }
    best.emplace_back(-score, e);
  }
  std::sort(best.begin(), best.end());
  const double largest = -double{best.front().first};
  for (const auto& [score, expert] : best) all += std::exp(-double{score} - largest);
  best.resize(static_cast<size_t>(config.experts.used));
  double chosen = 0.0;
  for (const auto& [score, expert] : best) chosen += std::exp(-double{score} - largest);
  std::map<int32_t, float> weights;  // ascending by expert: the order of the sum
  for (const auto& [score, expert] : best) {
    weights[expert] =
        static_cast<float>(std::exp(-double{score} - largest) / (config.experts.normalized ? chosen : all));
  }
  Buffer<float> sum(size);
  for (const auto& [expert, weight] : weights) {
    const ExpertWeights& matrices = layer.experts[static_cast<size_t>(expert)];
    const int64_t inner = config.experts.intermediate_size;
    Buffer<float> both(static_cast<size_t>(matrices.gate_up.padded_columns() + kInnerStep));
    Buffer<float> active(static_cast<size_t>(matrices.down.padded_k()));
    Buffer<float> given(size);
    linear(matrices.gate_up, Reading::kFull, {normed.data(), 1, width},
           {both.data(), 1, matrices.gate_up.padded_columns()}, workspace, team);
    kernel.silu_gate(both.data(), both.data() + inner, round_up<int64_t>(inner, 16), active.data());
    std::fill(active.data() + inner, active.data() + matrices.down.padded_k(), 0.0f);
    linear(matrices.down, Reading::kFull, {active.data(), 1, matrices.down.padded_k()},
           {given.data(), 1, matrices.down.padded_columns()}, workspace, team);
    for (int32_t i = 0; i < config.hidden_size; ++i) {
      const auto at = static_cast<size_t>(i);
      sum[at] = sum[at] + given[at] * weight;
    }
  }
  for (int32_t i = 0; i < config.hidden_size; ++i)
    hidden[static_cast<size_t>(i)] += sum[static_cast<size_t>(i)];
  kernel.rms_norm(hidden.data(), decoder.weights().final_norm.data(), width, config.hidden_size,
                  config.rms_norm_epsilon, normed.data());
  return {normed.data(), normed.data() + config.hidden_size};
}

TEST(Experts, GiveEachRowTheWeightedSumOfThoseItChoseInTheirOrder) {
  struct Case {
    const char* type;
    bool normalized;
  };
  for (const Case one : {Case{"mixtral", true}, Case{"qwen3_moe", true}, Case{"qwen3_moe", false}}) {
    const Decoder decoder = decoder_of(one_layer(one.type, one.normalized), [](NamedTensor&) {});
    std::vector<int32_t> tokens;
    for (int32_t i = 0; i < 40; ++i) tokens.push_back(i * 37 % 256);
    for (const int threads : {1, 3}) {
      const std::vector<std::vector<float>> states = states_of(decoder, tokens, threads);
      for (size_t r = 0; r < tokens.size(); ++r) {
        ASSERT_EQ(states[r], expected_state(decoder, tokens[r])) << one.type << " row " << r;
      }
    }
  }
}

/// The experts that a pass multiplies with, and the rows of each.
std::map<int32_t, int64_t> rows_by_expert(const Decoder& decoder, const std::vector<int32_t>& tokens) {
  const std::vector<ExpertWeights>& experts = decoder.weights().layers.front().experts;
  std::map<int32_t, int64_t> rows;
  int calls = 0;
  const std::function<void(const LinearWeight&, Matrix<const float>)> count = [&](const LinearWeight& weight,
                                                                                  Matrix<const float> x) {
    for (size_t e = 0; e < experts.size(); ++e) {
      if (&experts[e].gate_up == &weight) {
        EXPECT_EQ(rows.count(static_cast<int32_t>(e)), 0u) << "expert " << e << " is read twice";
        rows[static_cast<int32_t>(e)] = x.rows;
      }
      if (&experts[e].gate_up == &weight || &experts[e].down == &weight) ++calls;
    }
  };
  states_of(decoder, tokens, 2, &count);
  EXPECT_EQ(calls, 2 * static_cast<int>(rows.size()));
  return rows;
}

TEST(Experts, AreReadOnceForAllRowsThatWantThemAndNotAtAllForNone) {
  const Decoder decoder = decoder_of(one_layer("mixtral"), [](NamedTensor&) {});
  std::map<int32_t, int64_t> together;
  const std::vector<int32_t> tokens = {3, 50, 3, 77, 130, 9};
  for (const int32_t token : tokens) {
    const std::map<int32_t, int64_t> alone = rows_by_expert(decoder, {token});
    EXPECT_EQ(alone.size(), 3u);
    for (const auto& [expert, rows] : alone) {
      EXPECT_EQ(rows, 1);
      ++together[expert];
    }
  }
  EXPECT_EQ(rows_by_expert(decoder, tokens), together);
}

TEST(Experts, OfEqualScoresTheFirstAreChosen) {
  const Decoder decoder = decoder_of(one_layer("mixtral"), [](NamedTensor& tensor) {
    if (is_router(tensor)) std::fill(tensor.values.begin(), tensor.values.end(), 0.0f);
  });
  EXPECT_EQ(rows_by_expert(decoder, {1, 2}), (std::map<int32_t, int64_t>{{0, 2}, {1, 2}, {2, 2}}));
}

TEST(Experts, WithAScoreThatIsNoNumberIsChosenLast) {
  const auto spoiled = [](int32_t used) {
    TinyModelOptions options = one_layer("qwen3_moe");
    options.experts_used = used;
    return decoder_of(options, [](NamedTensor& tensor) {
      if (is_router(tensor)) tensor.values[2 * 72 + 5] = std::numeric_limits<float>::quiet_NaN();
    });
  };
  const std::vector<int32_t> tokens = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const Decoder some = spoiled(6);
  EXPECT_EQ(rows_by_expert(some, tokens).count(2), 0u);
  for (const std::vector<float>& state : states_of(some, tokens)) EXPECT_TRUE(std::isfinite(state.front()));
  const Decoder all = spoiled(7);
  EXPECT_EQ(rows_by_expert(all, tokens).size(), 7u);
  for (const std::vector<float>& state : states_of(all, tokens)) EXPECT_TRUE(std::isnan(state.front()));
}

TEST(Experts, CanBeFewerInAPassThanTheModelUses) {
  const std::vector<int32_t> tokens = {3, 50, 3, 77, 130, 9};
  for (const bool normalized : {false, true}) {
    const auto model_using = [&](int32_t used) {
      TinyModelOptions options = one_layer("qwen3_moe", normalized);
      options.experts_used = used;
      return decoder_of(options, [](NamedTensor&) {});
    };
    const Decoder three = model_using(3);
    for (const int32_t fewer : {1, 2}) {
      EXPECT_EQ(states_of(three, tokens, 2, nullptr, fewer), states_of(model_using(fewer), tokens)) << fewer;
    }
    EXPECT_EQ(states_of(three, tokens, 2, nullptr, 9), states_of(three, tokens));
  }
}

TEST(Experts, CountWithThoseThatARowGoesThroughInItsOperations) {
  TinyModelOptions options = one_layer("qwen3_moe");
  options.layers = 3;
  options.dense_layers = {1};
  const Decoder decoder = decoder_of(options, [](NamedTensor&) {});
  const double attention = 2.0 * 72 * (128 + 2 * 64) + 2.0 * 128 * 72;
  const double expert = 3 * 2.0 * 72 * 42;
  const double dense = 3 * 2.0 * 72 * 84;
  EXPECT_EQ(flops_per_row(decoder), 3 * attention + 2 * 3 * expert + dense + 2.0 * 72 * 256);
}

TEST(Experts, SayTheSameFromAPackedFile) {
  const test::TemporaryFolder folder;
  ThreadTeam team(2);
  for (const char* type : {"mixtral", "qwen3_moe", "gpt_oss"}) {
    TinyModelOptions options{.model_type = type, .layers = 3};
    if (options.model_type == "qwen3_moe") options.dense_layers = {1};
    test::write_tiny_llama(folder.path() / type, options);
    PackModelOptions pack;
    pack.load.formats = {std::nullopt, Format::kMxfp4};
    const std::optional<Container> container = pack_model(
        open_checkpoint(folder.path() / type), folder.path() / (std::string(type) + ".vbt"), pack, team);
    ASSERT_TRUE(container);
    EXPECT_TRUE(container->exact());
    const Decoder packed(container->header.config, load_weights(*container, {std::nullopt, Format::kMxfp4}));
    const Decoder own = test::load_decoder(folder.path() / type);
    const std::vector<int32_t> tokens = {1, 5, 99, 200, 3, 3, 8};
    for (const Reading reading : {Reading::kFull, Reading::kMxfp4W4A8}) {
      EXPECT_EQ(test::all_logits(packed, tokens, 512, reading, team),
                test::all_logits(own, tokens, 512, reading, team))
          << type << ' ' << reading_name(reading);
    }
  }
}

TEST(Experts, OfOldFilesHaveATensorEach) {
  const test::TemporaryFolder folder;
  ThreadTeam team(2);
  for (const DType dtype : {DType::kF32, DType::kQ8_0}) {
    TinyModelOptions options{.model_type = "mixtral", .dtype = dtype};
    test::write_tiny_gguf(folder.path() / "stacked.gguf", options);
    options.stacked_experts = false;
    test::write_tiny_gguf(folder.path() / "single.gguf", options);
    const std::vector<int32_t> tokens = {1, 5, 99, 200, 3, 3, 8};
    EXPECT_EQ(test::all_logits(test::load_decoder(folder.path() / "single.gguf"), tokens, 512, Reading::kFull,
                               team),
              test::all_logits(test::load_decoder(folder.path() / "stacked.gguf"), tokens, 512,
                               Reading::kFull, team));
  }
}

}  // namespace
}  // namespace verbatim
