#include "model/decoder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "kv/dense.h"
#include "support/engine_support.h"
#include "support/machine_paths.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

using test::machine_paths;
using test::MachinePath;
using test::TinyModelOptions;

std::vector<int32_t> some_tokens(size_t count, int32_t vocabulary, int32_t seed) {
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < count; ++i) {
    tokens.push_back((static_cast<int32_t>(i) * 37 + seed * 101 + static_cast<int32_t>(i * i) % 13) %
                     vocabulary);
  }
  return tokens;
}

TinyModelOptions variant(const std::string& name) {
  TinyModelOptions options;
  if (name == "llama") return options;
  if (name == "odd_sizes") {
    options.hidden_size = 72;
    options.intermediate_size = 172;
    options.heads = 6;
    options.kv_heads = 2;
    options.head_dim = 12;
    options.vocab_size = 250;
    options.dtype = DType::kF32;
  } else if (name == "mistral") {
    options.model_type = "mistral";
    options.sliding_window = 20;
  } else if (name == "qwen2") {
    options.model_type = "qwen2";
    options.tied = true;
  } else if (name == "qwen3") {  // norms of heads that are no whole number of steps of the kernels
    options.model_type = "qwen3";
    options.head_dim = 40;
  } else if (name == "smollm3") {  // its one layer without rotation has a window
    options.model_type = "smollm3";
    options.layers = 4;
    options.sliding_window = 20;
  } else if (name == "olmo2") {  // norms that are no whole number of steps of the kernels
    options.model_type = "olmo2";
    options.hidden_size = 72;
    options.head_dim = 12;
    options.heads = 6;
  } else if (name == "phi3") {
    options.model_type = "phi3";
    options.head_dim = 40;
    options.sliding_window = 20;
  } else if (name == "gemma2" || name == "gemma3_text") {
    options.model_type = name;
    options.hidden_size = 72;
    options.layers = name == "gemma2" ? 2 : 6;  // the last sees everything
    options.sliding_window = 20;
  } else if (name == "glm4") {  // rotates an odd number of pairs
    options.model_type = "glm4";
    options.head_dim = 44;
  } else if (name == "granite") {
    options.model_type = "granite";
  } else if (name == "mixtral") {
    options.model_type = "mixtral";
    options.sliding_window = 20;
  } else if (name == "gpt_oss") {
    options.model_type = "gpt_oss";
    options.context = 64;
    options.sliding_window = 20;
  } else if (name == "qwen3_moe") {  // its second layer has no experts
    options.model_type = "qwen3_moe";
    options.hidden_size = 72;
    options.intermediate_size = 172;
    options.layers = 3;
    options.experts = 19;
    options.experts_used = 4;
    options.dense_layers = {1};
    options.normalized_experts = false;
  } else if (name == "gpt2" || name == "opt") {
    options.model_type = name;
    options.hidden_size = 72;
    options.intermediate_size = 172;
  } else if (name == "starcoder2") {
    options.model_type = name;
    options.hidden_size = 72;
    options.intermediate_size = 172;
    options.head_dim = 12;
    options.sliding_window = 20;
    options.tied = true;
  } else if (name == "f16") {
    options.dtype = DType::kF16;
  } else if (name == "dynamic") {  // most rows lie beyond the original context
    options.context = 24;
    options.rope_scaling = R"({"type": "dynamic", "factor": 4.0})";
  } else if (name == "yarn") {
    options.context = 24;
    options.rope_scaling = R"({"rope_type": "yarn", "factor": 4.0, "beta_fast": 4})";
  }
  return options;
}

class DecoderRows : public testing::TestWithParam<std::tuple<MachinePath, std::string>> {
 protected:
  void SetUp() override { LOWER_PATHS_TOO_LONG_FOR_SANITIZERS(std::get<0>(GetParam()).name); }
  DecoderRows() {
    test::write_tiny_llama(folder_.path() / "model", variant(std::get<1>(GetParam())));
    decoder_.emplace(test::load_decoder(folder_.path() / "model"));
  }
  test::SelectedKernels selected_{*std::get<0>(GetParam()).table};
  test::TemporaryFolder folder_;
  std::optional<Decoder> decoder_;
};

INSTANTIATE_TEST_SUITE_P(
    , DecoderRows,
    testing::Combine(testing::ValuesIn(machine_paths()),
                     testing::Values("llama", "odd_sizes", "mistral", "qwen2", "qwen3", "smollm3", "granite",
                                     "olmo2", "phi3", "gemma2", "gemma3_text", "glm4", "mixtral", "qwen3_moe",
                                     "gpt_oss", "gpt2", "starcoder2", "opt", "f16", "dynamic", "yarn")),
    [](const auto& info) { return std::get<0>(info.param).name + "_" + std::get<1>(info.param); });

TEST_P(DecoderRows, LogitsDoNotDependOnHowThePastWasCutOrOnThreads) {
  const std::vector<int32_t> tokens = some_tokens(150, decoder_->config().vocab_size, 1);
  for (const Reading reading : {Reading::kFull, Reading::kMxfp4W4A16, Reading::kMxfp4W4A8}) {
    ThreadTeam one(1);
    const std::vector<float> expected = test::all_logits(*decoder_, tokens, 1, reading, one);
    for (const float logit : expected) ASSERT_TRUE(std::isfinite(logit));
    struct Cut {
      int threads;
      int64_t chunk;
    };
    for (const Cut cut : {Cut{1, 7}, Cut{2, 2}, Cut{2, 33}, Cut{3, 16}, Cut{3, 150}}) {
      ThreadTeam team(cut.threads);
      ASSERT_EQ(test::all_logits(*decoder_, tokens, cut.chunk, reading, team), expected)
          << reading_name(reading) << " threads " << cut.threads << " chunk " << cut.chunk;
    }
  }
}

/// Remembers what it is shown, per layer and key-value head.
class Recorder : public AttentionObserver {
 public:
  explicit Recorder(const ModelConfig& config)
      : kv_heads_(config.kv_heads),
        shares_(static_cast<size_t>(config.layers * config.kv_heads)),
        calls_(shares_.size()) {}

  void observe(int64_t layer, int64_t head, const AttentionBlock& block, AttentionScratch& scratch) override {
    const auto at = static_cast<size_t>(layer * kv_heads_ + head);
    ++calls_[at];
    rows_ = block.rows;
    shares_[at].assign(static_cast<size_t>(block.positions[block.rows - 1]) + 1, 0.0f);
    add_attention_shares(block, scratch, shares_[at]);
  }

  int64_t kv_heads_;
  int64_t rows_ = 0;
  std::vector<std::vector<float>> shares_;
  std::vector<int> calls_;
};

// The last rows are evaluated once more, as a draft that wants their queries does it.
TEST_P(DecoderRows, BeingObservedChangesNothing) {
  const ModelConfig& config = decoder_->config();
  const std::vector<int32_t> tokens = some_tokens(150, config.vocab_size, 1);
  std::vector<Row> rows;
  for (size_t p = 0; p < tokens.size(); ++p) rows.push_back({0, static_cast<int32_t>(p), tokens[p]});
  const std::span<const Row> last = std::span<const Row>(rows).subspan(118);
  std::vector<std::vector<float>> shown;
  for (const int threads : {1, 3}) {
    ThreadTeam team(threads);
    DenseCache cache(decoder_->cache_shape(), 150);
    KvCache* const caches[] = {&cache};
    DecoderWorkspace workspace;
    const auto contents = [&] {
      std::vector<float> all;
      std::vector<float> keys(static_cast<size_t>(kAttentionChunk * config.head_dim));
      std::vector<float> values(keys.size());
      for (int64_t i = 0; i < config.layers * config.kv_heads * 2; ++i) {
        cache.read_chunk(i / 2 / config.kv_heads, i / 2 % config.kv_heads, i % 2, keys.data(), values.data());
        all.insert(all.end(), keys.begin(), keys.end());
        all.insert(all.end(), values.begin(), values.end());
      }
      return all;
    };
    const auto logits = [&](std::span<const Row> some, const PassKind& kind) {
      const Matrix<const float> row =
          decoder_->forward(some, kind, caches, static_cast<int64_t>(some.size()) - 1, workspace, team);
      return std::vector<float>(row.row(0), row.row(0) + row.columns);
    };
    const std::vector<float> expected = logits(rows, Reading::kFull);
    const std::vector<float> before = contents();
    Recorder recorder(config);
    PassKind kind(Reading::kFull);
    kind.observer = &recorder;
    EXPECT_EQ(logits(last, kind), expected);
    EXPECT_EQ(contents(), before);
    EXPECT_EQ(recorder.rows_, 32);
    for (size_t i = 0; i < recorder.calls_.size(); ++i) {
      EXPECT_EQ(recorder.calls_[i], 1);
      double sum = 0.0;
      for (const float share : recorder.shares_[i]) sum += static_cast<double>(share);
      const double whole = 32.0 * config.heads / config.kv_heads;
      if (config.head_sinks) {  // sinks have a share, too
        EXPECT_LT(sum, whole - 0.1);
        EXPECT_GT(sum, whole / 2);
      } else {
        EXPECT_NEAR(sum, whole, 1e-2);
      }
    }
    if (!shown.empty()) {
      EXPECT_EQ(recorder.shares_, shown);
    }
    shown = recorder.shares_;

    Row branch = rows.back();
    branch.parent = 0;
    branch.position = last.front().position + 1;
    std::vector<Row> tree(last.begin(), last.end());
    tree.push_back(branch);
    EXPECT_THROW(logits(tree, kind), Error);
  }
}

TEST_P(DecoderRows, SequencesInOnePassDoNotInfluenceEachOther) {
  ThreadTeam team(2);
  const std::vector<size_t> lengths = {5, 40, 1, 17};
  std::vector<DenseCache> caches;
  std::vector<KvCache*> pointers;
  std::vector<Row> rows;
  std::vector<float> expected;
  for (size_t s = 0; s < lengths.size(); ++s) caches.emplace_back(decoder_->cache_shape(), 64);
  for (size_t s = 0; s < lengths.size(); ++s) {
    pointers.push_back(&caches[s]);
    const std::vector<int32_t> tokens =
        some_tokens(lengths[s], decoder_->config().vocab_size, static_cast<int32_t>(s));
    const std::vector<float> alone = test::all_logits(*decoder_, tokens, 512, Reading::kFull, team);
    expected.insert(expected.end(), alone.begin(), alone.end());
    for (size_t p = 0; p < tokens.size(); ++p) {
      rows.push_back({static_cast<int32_t>(s), static_cast<int32_t>(p), tokens[p]});
    }
  }
  DecoderWorkspace workspace;
  const Matrix<const float> logits = decoder_->forward(rows, Reading::kFull, pointers, 0, workspace, team);
  std::vector<float> actual;
  for (int64_t r = 0; r < logits.rows; ++r) {
    actual.insert(actual.end(), logits.row(r), logits.row(r) + logits.columns);
  }
  EXPECT_EQ(actual, expected);
}

TEST_P(DecoderRows, VerificationLeavesTheCacheOfPlainDecoding) {
  ThreadTeam team(2);
  const std::vector<int32_t> tokens = some_tokens(60, decoder_->config().vocab_size, 2);
  const std::vector<float> expected = test::all_logits(*decoder_, tokens, 1, Reading::kFull, team);
  DenseCache cache(decoder_->cache_shape(), 64);
  KvCache* const caches[] = {&cache};
  DecoderWorkspace workspace;
  std::vector<float> last;
  for (int32_t base = 0; base < 60; base += 6) {
    // Drafts of other tokens in another reading go where the verified rows will be.
    for (int32_t p = base; p < base + 6; ++p) {
      const Row draft{0, p, (tokens[static_cast<size_t>(p)] + 1) % decoder_->config().vocab_size};
      decoder_->forward({&draft, 1}, Reading::kMxfp4W4A8, caches, 0, workspace, team);
    }
    std::vector<Row> rows;
    for (int32_t p = base; p < base + 6; ++p) rows.push_back({0, p, tokens[static_cast<size_t>(p)]});
    const Matrix<const float> logits = decoder_->forward(rows, Reading::kFull, caches, 0, workspace, team);
    for (int64_t r = 0; r < 6; ++r) last.insert(last.end(), logits.row(r), logits.row(r) + logits.columns);
  }
  EXPECT_EQ(last, expected);
}

/// The rows of a random tree whose root stands at `position`: some chains go on, some branch.
std::vector<Row> random_tree(int32_t position, size_t nodes, int32_t vocabulary, std::mt19937& random) {
  std::vector<Row> rows = {{0, position, 1}};
  while (rows.size() < nodes) {
    const auto last = static_cast<int32_t>(rows.size()) - 1;
    const int32_t parent = random() % 2 == 0 ? last : static_cast<int32_t>(random() % rows.size());
    rows.push_back({0, rows[static_cast<size_t>(parent)].position + 1,
                    static_cast<int32_t>(random() % static_cast<uint32_t>(vocabulary)),
                    parent == last ? Row::kPrevious : parent});
  }
  return rows;
}

/// The rows from the root of a tree to one of its rows.
std::vector<size_t> path_to(const std::vector<Row>& rows, size_t row) {
  std::vector<size_t> path;
  for (auto r = static_cast<int32_t>(row); r >= 0;) {
    path.insert(path.begin(), static_cast<size_t>(r));
    const Row& node = rows[static_cast<size_t>(r)];
    r = node.parent == Row::kPrevious ? r - 1 : node.parent;
  }
  return path;
}

/// Paths that together have every row of a tree.
std::vector<std::vector<size_t>> paths_of(const std::vector<Row>& rows) {
  std::vector<bool> seen(rows.size());
  std::vector<std::vector<size_t>> paths;
  for (size_t r = rows.size(); r-- > 0;) {  // a row comes after those on its path
    if (seen[r]) continue;
    paths.push_back(path_to(rows, r));
    for (const size_t on_path : paths.back()) seen[on_path] = true;
  }
  return paths;
}

// Roots around the border of attention's chunks, so that trees cross it.
TEST_P(DecoderRows, ATreeGivesEveryNodeTheLogitsOfItsPathAndKeepsTheOneThatIsChosen) {
  ThreadTeam team(2);
  std::mt19937 random(7);
  const int32_t vocabulary = decoder_->config().vocab_size;
  for (const int32_t root : {3, 120, 127, 128}) {
    std::vector<int32_t> past = some_tokens(static_cast<size_t>(root), vocabulary, root);
    const std::vector<Row> rows = random_tree(root, 24, vocabulary, random);
    DenseCache cache(decoder_->cache_shape(), 256);
    KvCache* const caches[] = {&cache};
    DecoderWorkspace workspace;
    std::vector<Row> prompt;
    for (int32_t p = 0; p < root; ++p) prompt.push_back({0, p, past[static_cast<size_t>(p)]});
    decoder_->forward(prompt, Reading::kFull, caches, root, workspace, team);
    const Matrix<const float> logits = decoder_->forward(rows, Reading::kFull, caches, 0, workspace, team);
    std::vector<std::vector<float>> actual;
    for (int64_t r = 0; r < logits.rows; ++r) actual.emplace_back(logits.row(r), logits.row(r) + vocabulary);
    const size_t kept = 1 + random() % (rows.size() - 1);
    decoder_->keep_path(static_cast<int64_t>(kept), cache, workspace);
    const auto with_past = [&](const std::vector<size_t>& path) {
      std::vector<int32_t> tokens = past;
      for (const size_t r : path) tokens.push_back(rows[r].token);
      return tokens;
    };
    for (const std::vector<size_t>& path : paths_of(rows)) {
      const std::vector<float> all = test::all_logits(*decoder_, with_past(path), 512, Reading::kFull, team);
      auto expected = all.end() - static_cast<int64_t>(path.size()) * vocabulary;
      for (const size_t r : path) {
        ASSERT_EQ(actual[r], std::vector<float>(expected, expected + vocabulary))
            << "root " << root << " row " << r;
        expected += vocabulary;
      }
    }
    std::vector<int32_t> tokens = with_past(path_to(rows, kept));
    tokens.push_back(5);
    const Row next{0, static_cast<int32_t>(tokens.size()) - 1, 5};
    const std::vector<float> after = test::all_logits(*decoder_, tokens, 512, Reading::kFull, team);
    const Matrix<const float> going_on =
        decoder_->forward({&next, 1}, Reading::kFull, caches, 0, workspace, team);
    ASSERT_EQ(std::vector<float>(going_on.row(0), going_on.row(0) + vocabulary),
              std::vector<float>(after.end() - vocabulary, after.end()));
  }
}

TEST(Decoder, RowsThatDoNotFollowTheirParentAreRefused) {
  const test::TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model", {});
  const Decoder decoder = test::load_decoder(folder.path() / "model");
  ThreadTeam team(1);
  DenseCache cache(decoder.cache_shape(), 16);
  KvCache* const caches[] = {&cache};
  DecoderWorkspace workspace;
  const std::vector<std::vector<Row>> bad = {{{0, 0, 1}, {0, 1, 1}, {0, 2, 1, 0}},
                                             {{0, 0, 1}, {0, 1, 1, 7}},
                                             {{0, 0, 1}, {0, 1, 1}, {0, 1, 1, 2}},
                                             {{0, 0, 1}, {0, 1, 1}, {0, 1, 1, -2}}};
  for (const std::vector<Row>& rows : bad) {
    EXPECT_THROW(decoder.forward(rows, Reading::kFull, caches, 0, workspace, team), Error);
  }
}

TEST(Decoder, AGgufLlamaIsTheSameModelAsItsHuggingFaceTwin) {
  const test::TemporaryFolder folder;
  ThreadTeam team(2);
  for (const char* family :
       {"llama", "qwen2", "qwen3", "smollm3", "granite", "olmo2", "phi3", "gemma2", "gemma3_text", "glm4",
        "mixtral", "qwen3_moe", "gpt_oss", "gpt2", "starcoder2"}) {
    TinyModelOptions options;
    options.model_type = family;
    options.layers = 6;
    if (std::string(family).starts_with("gemma") || std::string(family) == "gpt_oss") {
      options.sliding_window = 20;
    }
    options.dtype = DType::kF32;  // GGUF keeps norms in F32; so must the twin, to have the same ones
    test::write_tiny_llama(folder.path() / family, options);
    test::write_tiny_gguf(folder.path() / (std::string(family) + ".gguf"), options);
    const Decoder hugging_face = test::load_decoder(folder.path() / family);
    const Decoder gguf = test::load_decoder(folder.path() / (std::string(family) + ".gguf"));
    const std::vector<int32_t> tokens = some_tokens(30, 256, 3);
    EXPECT_EQ(test::all_logits(gguf, tokens, 512, Reading::kFull, team),
              test::all_logits(hugging_face, tokens, 512, Reading::kFull, team))
        << family;
  }
}

TEST(Decoder, Q8WeightsAreReadAsStored) {
  const test::TemporaryFolder folder;
  TinyModelOptions options;
  options.dtype = DType::kQ8_0;
  test::write_tiny_gguf(folder.path() / "model.gguf", options);
  options.dtype = DType::kF32;
  test::write_tiny_gguf(folder.path() / "exact.gguf", options);
  ThreadTeam team(2);
  const std::vector<int32_t> tokens = some_tokens(20, 256, 4);
  const auto q8 =
      test::all_logits(test::load_decoder(folder.path() / "model.gguf"), tokens, 512, Reading::kFull, team);
  const auto f32 =
      test::all_logits(test::load_decoder(folder.path() / "exact.gguf"), tokens, 512, Reading::kFull, team);
  double error = 0.0;
  double size = 0.0;
  for (size_t i = 0; i < q8.size(); ++i) {
    error += std::pow(q8[i] - f32[i], 2.0);
    size += std::pow(f32[i], 2.0);
  }
  EXPECT_GT(error, 0.0);
  EXPECT_LT(std::sqrt(error / size), 0.05);
}

TEST(Decoder, ASlidingWindowForgetsWhatIsBeforeIt) {
  const test::TemporaryFolder folder;
  TinyModelOptions options;
  options.model_type = "mistral";
  options.sliding_window = 10;
  options.layers = 1;  // with one layer a position reaches exactly the window
  test::write_tiny_llama(folder.path() / "model", options);
  const Decoder decoder = test::load_decoder(folder.path() / "model");
  ThreadTeam team(1);
  std::vector<int32_t> tokens = some_tokens(40, 256, 5);
  const std::vector<float> before = test::all_logits(decoder, tokens, 512, Reading::kFull, team);
  tokens[29] = (tokens[29] + 1) % 256;
  const std::vector<float> after = test::all_logits(decoder, tokens, 512, Reading::kFull, team);
  const auto same = [&](size_t position) {
    return std::equal(before.begin() + static_cast<long>(position * 256),
                      before.begin() + static_cast<long>((position + 1) * 256),
                      after.begin() + static_cast<long>(position * 256));
  };
  EXPECT_TRUE(same(28));
  EXPECT_FALSE(same(29));
  EXPECT_FALSE(same(38));
  EXPECT_TRUE(same(39));
}

/// The values of a tensor multiplied by a factor.
void scale_tensor(std::vector<test::NamedTensor>& tensors, const std::string& name, float factor) {
  for (test::NamedTensor& tensor : tensors) {
    if (tensor.name != name) continue;
    for (float& value : tensor.values) value *= factor;
  }
}

// Each factor can be put on weights in its place, up to rounding.
TEST(Decoder, FactorsAreThoseOfScaledWeights) {
  const test::TemporaryFolder folder;
  ThreadTeam team(2);
  TinyModelOptions options;
  options.model_type = "granite";
  options.dtype = DType::kF32;
  test::write_tiny_llama(folder.path() / "factors", options);
  TinyModelOptions plain = options;
  plain.model_type = "llama";
  test::write_tiny_llama(folder.path() / "weights", plain);
  std::vector<test::NamedTensor> tensors = test::tiny_tensors(options);
  scale_tensor(tensors, "model.embed_tokens.weight", 2.5f);
  for (int layer = 0; layer < options.layers; ++layer) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    scale_tensor(tensors, prefix + "self_attn.q_proj.weight", 0.25f * std::sqrt(32.0f));
    scale_tensor(tensors, prefix + "self_attn.o_proj.weight", 0.4f);
    scale_tensor(tensors, prefix + "mlp.down_proj.weight", 0.4f);
  }
  scale_tensor(tensors, "lm_head.weight", 2.0f);
  folder.write("weights/model.safetensors", test::safetensors_file(tensors, options.dtype));
  const std::vector<int32_t> tokens = some_tokens(30, 256, 6);
  const auto factors =
      test::all_logits(test::load_decoder(folder.path() / "factors"), tokens, 512, Reading::kFull, team);
  const auto weights =
      test::all_logits(test::load_decoder(folder.path() / "weights"), tokens, 512, Reading::kFull, team);
  for (size_t i = 0; i < factors.size(); ++i) ASSERT_NEAR(factors[i], weights[i], 0.1f) << i;
}

/// Some rows of a tensor as a tensor of their own.
test::NamedTensor rows_of(const test::NamedTensor& tensor, const std::string& name, int64_t first,
                          int64_t rows) {
  const int64_t columns = tensor.shape.back();
  const auto begin = tensor.values.begin() + first * columns;
  return {name, {rows, columns}, {begin, begin + rows * columns}};
}

TEST(Decoder, MatricesStoredAsOneAreThoseStoredApart) {
  const test::TemporaryFolder folder;
  ThreadTeam team(2);
  TinyModelOptions options;
  options.model_type = "phi3";
  test::write_tiny_llama(folder.path() / "fused", options);
  options.model_type = "llama";
  test::write_tiny_llama(folder.path() / "apart", options);
  options.model_type = "phi3";
  std::vector<test::NamedTensor> tensors;
  for (const test::NamedTensor& tensor : test::tiny_tensors(options)) {
    const std::string prefix = tensor.name.substr(0, tensor.name.rfind("qkv_proj"));
    const std::string mlp = tensor.name.substr(0, tensor.name.rfind("gate_up_proj"));
    if (prefix != tensor.name) {
      tensors.push_back(rows_of(tensor, prefix + "q_proj.weight", 0, 128));
      tensors.push_back(rows_of(tensor, prefix + "k_proj.weight", 128, 64));
      tensors.push_back(rows_of(tensor, prefix + "v_proj.weight", 192, 64));
    } else if (mlp != tensor.name) {
      tensors.push_back(rows_of(tensor, mlp + "gate_proj.weight", 0, options.intermediate_size));
      tensors.push_back(
          rows_of(tensor, mlp + "up_proj.weight", options.intermediate_size, options.intermediate_size));
    } else {
      tensors.push_back(tensor);
    }
  }
  folder.write("apart/model.safetensors", test::safetensors_file(tensors, options.dtype));
  // All of each head is rotated in both.
  nlohmann::json config = nlohmann::json::parse(test::read_file(folder.path() / "fused/config.json"));
  config.erase("partial_rotary_factor");
  folder.write("fused/config.json", config.dump());
  const std::vector<int32_t> tokens = some_tokens(30, 256, 6);
  EXPECT_EQ(test::all_logits(test::load_decoder(folder.path() / "fused"), tokens, 512, Reading::kFull, team),
            test::all_logits(test::load_decoder(folder.path() / "apart"), tokens, 512, Reading::kFull, team));
}

// The part's outputs are normed, so a factor on the matrix that makes them means nothing.
TEST(Decoder, NormsAfterThePartsOfALayerUndoTheSizeOfWhatTheyAdd) {
  const test::TemporaryFolder folder;
  ThreadTeam team(2);
  TinyModelOptions options;
  options.model_type = "olmo2";
  options.dtype = DType::kF32;
  const std::vector<int32_t> tokens = some_tokens(30, 256, 6);
  const auto logits_with = [&](const std::string& tensor) {
    test::write_tiny_llama(folder.path() / "model", options);
    std::vector<test::NamedTensor> tensors = test::tiny_tensors(options);
    scale_tensor(tensors, tensor, 8.0f);
    folder.write("model/model.safetensors", test::safetensors_file(tensors, options.dtype));
    return test::all_logits(test::load_decoder(folder.path() / "model"), tokens, 512, Reading::kFull, team);
  };
  const std::vector<float> plain = logits_with("none");
  for (const char* name : {"self_attn.o_proj.weight", "mlp.down_proj.weight"}) {
    const std::vector<float> scaled = logits_with(std::string("model.layers.0.") + name);
    for (size_t i = 0; i < plain.size(); ++i) ASSERT_NEAR(scaled[i], plain[i], 0.05f) << name;
  }
  for (const char* name : {"post_attention_layernorm.weight", "post_feedforward_layernorm.weight"}) {
    const std::vector<float> scaled = logits_with(std::string("model.layers.0.") + name);
    float difference = 0.0f;
    for (size_t i = 0; i < plain.size(); ++i)
      difference = std::max(difference, std::abs(scaled[i] - plain[i]));
    EXPECT_GT(difference, 0.5f) << name;
  }
}

// Without rotation, and with all positions in view, the order of the positions before the last means nothing.
TEST(Decoder, ALayerThatDoesNotRotateSeesNoOrder) {
  const test::TemporaryFolder folder;
  for (const bool rotates : {false, true}) {
    TinyModelOptions options;
    options.model_type = "smollm3";
    options.layers = 1;
    const std::string name = rotates ? "rotates" : "does_not";
    test::write_tiny_llama(folder.path() / name, options);
    nlohmann::json config = nlohmann::json::parse(test::read_file(folder.path() / name / "config.json"));
    config["no_rope_layers"] = {rotates ? 1 : 0};
    folder.write(name + "/config.json", config.dump());
    const Decoder decoder = test::load_decoder(folder.path() / name);
    ThreadTeam team(1);
    const auto last = [&](const std::vector<int32_t>& tokens) {
      const std::vector<float> all = test::all_logits(decoder, tokens, 512, Reading::kFull, team);
      return std::vector<float>(all.end() - 256, all.end());
    };
    const std::vector<float> one = last({5, 80, 7, 200, 9});
    const std::vector<float> other = last({200, 7, 5, 80, 9});
    float difference = 0.0f;
    for (size_t i = 0; i < one.size(); ++i) difference = std::max(difference, std::abs(one[i] - other[i]));
    if (rotates) {
      EXPECT_GT(difference, 0.3f);
    } else {
      EXPECT_LT(difference, 0.1f);
    }
  }
}

// A norm undoes any factor on the matrix before it, except for its epsilon.
TEST(Decoder, QueriesAndKeysAreNormedBeforeTheyMeet) {
  const test::TemporaryFolder folder;
  ThreadTeam team(2);
  const std::vector<int32_t> tokens = some_tokens(30, 256, 6);
  for (const char* part : {"q", "k"}) {
    std::map<std::string, std::vector<float>> logits;
    for (const std::string change : {"none", "proj", "norm"}) {
      TinyModelOptions options;
      options.model_type = "qwen3";
      options.dtype = DType::kF32;
      const auto path = folder.path() / (part + change);
      test::write_tiny_llama(path, options);
      std::vector<test::NamedTensor> tensors = test::tiny_tensors(options);
      scale_tensor(tensors, fmt::format("model.layers.0.self_attn.{}_{}.weight", part, change), 4.0f);
      folder.write(part + change + "/model.safetensors", test::safetensors_file(tensors, options.dtype));
      logits[change] = test::all_logits(test::load_decoder(path), tokens, 512, Reading::kFull, team);
    }
    float unchanged = 0.0f;
    float changed = 0.0f;
    for (size_t i = 0; i < logits["none"].size(); ++i) {
      unchanged = std::max(unchanged, std::abs(logits["none"][i] - logits["proj"][i]));
      changed = std::max(changed, std::abs(logits["none"][i] - logits["norm"][i]));
    }
    EXPECT_LT(unchanged, 0.05f) << part;
    EXPECT_GT(changed, 0.5f) << part;
  }
}

TEST(Decoder, TokensAndPositionsOutsideAreRefused) {
  const test::TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model", {});
  const Decoder decoder = test::load_decoder(folder.path() / "model");
  ThreadTeam team(1);
  DenseCache cache(decoder.cache_shape(), 16);
  KvCache* const caches[] = {&cache};
  DecoderWorkspace workspace;
  for (const Row row : {Row{0, 0, -1}, Row{0, 0, 256}, Row{0, 128, 1}, Row{0, -1, 1}}) {
    EXPECT_THROW(decoder.forward({&row, 1}, Reading::kFull, caches, 0, workspace, team), Error);
  }
}

}  // namespace
}  // namespace verbatim
