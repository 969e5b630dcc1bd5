#include "verbatim/inflate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/float16.h"
#include "checkpoint/bad_input.h"
#include "prepare/inflate_config.h"
#include "support/engine_support.h"
#include "support/quantized_folder.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace inflate_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::expect_bad_input;
using test::NamedTensor;
using test::TemporaryFolder;
using test::TinyModelOptions;

constexpr int32_t kTokens = 40;

/// The logits of a fixed text.
std::vector<float> logits_of(const fs::path& model, Reading reading = Reading::kFull) {
  const Decoder decoder = test::load_decoder(model);
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < kTokens; ++i) tokens.push_back((i * 37 + 11) % decoder.config().vocab_size);
  ThreadTeam team(2);
  return test::all_logits(decoder, tokens, 16, reading, team);
}

/// The largest difference of two texts' logits, over the largest logit.
float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  float difference = 0.0f;
  float largest = 0.0f;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = std::max(difference, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(a[i]));
  }
  return difference / largest;
}

/// Every row's likeliest token is the same, unless the two are as good as tied.
void expect_same_choices(const std::vector<float>& a, const std::vector<float>& b, float tie) {
  const size_t width = a.size() / kTokens;
  for (size_t r = 0; r < kTokens; ++r) {
    const float* const row = a.data() + r * width;
    const auto first = std::max_element(row, row + width) - row;
    const float* const other = b.data() + r * width;
    const auto second = std::max_element(other, other + width) - other;
    EXPECT_LE(row[first] - row[second], tie) << "row " << r;
  }
}

void expect_same_function(const TinyModelOptions& options, int32_t width, int32_t depth) {
  SCOPED_TRACE(testing::Message() << options.model_type << ' ' << dtype_name(options.dtype) << ", width "
                                  << width << ", depth " << depth);
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "small", options);
  const auto report =
      inflate_model(folder.path() / "small", folder.path() / "large", {.width = width, .depth = depth});
  ASSERT_TRUE(report.has_value());
  const std::vector<float> small = logits_of(folder.path() / "small");
  const std::vector<float> large = logits_of(folder.path() / "large");
  // Activations, keys and values are rounded to BF16, so what the order of additions changes in the last
  // place of a float can change the last place of those.
  EXPECT_LT(largest_difference(small, large), 0.01f);
  expect_same_choices(small, large, 0.02f);
}

TEST(Inflate, ComputesTheSameInEveryFamily) {
  for (const char* type : {"llama", "mistral", "qwen2", "qwen3", "smollm3", "granite", "olmo2", "phi3",
                           "glm4", "mixtral", "qwen3_moe", "starcoder2"}) {
    for (const bool tied : {false, true}) {
      TinyModelOptions options;
      options.model_type = type;
      if (options.model_type == "smollm3") options.layers = 4;  // the last does not rotate
      if (options.model_type == "qwen3_moe") options.dense_layers = {1};
      options.tied = tied;
      for (const int32_t width : {2, 4}) expect_same_function(options, width, 5);
    }
  }
}

TEST(Inflate, ComputesTheSameWithEveryGroupingOfHeads) {
  for (const int32_t kv_heads : {1, 2, 4}) {
    TinyModelOptions options;
    options.kv_heads = kv_heads;
    options.sliding_window = 16;
    options.model_type = "mistral";
    expect_same_function(options, 2, 0);
  }
}

TEST(Inflate, ComputesTheSameInF32AndOddSizes) {
  TinyModelOptions options;
  options.dtype = DType::kF32;
  options.hidden_size = 24;
  options.intermediate_size = 36;
  options.head_dim = 6;
  options.vocab_size = 50;
  for (const int32_t width : {1, 2, 8}) expect_same_function(options, width, 3);
}

TEST(Inflate, AddedLayersChangeNoBit) {
  const TemporaryFolder folder;
  for (const char* type : {"llama", "qwen2", "qwen3", "smollm3", "granite", "olmo2", "phi3", "gemma2",
                           "gemma3_text", "glm4", "mixtral", "qwen3_moe", "starcoder2"}) {
    const fs::path small = folder.path() / type;
    const fs::path large = folder.path() / (std::string(type) + "-deep");
    TinyModelOptions options = {.model_type = type, .layers = 4};
    if (options.model_type.starts_with("gemma")) options.sliding_window = 16;
    if (options.model_type == "qwen3_moe") options.dense_layers = {2};
    test::write_tiny_llama(small, options);
    inflate_model(small, large, {.depth = 9});
    EXPECT_EQ(logits_of(small), logits_of(large));
    EXPECT_EQ(logits_of(small, Reading::kMxfp4W4A8), logits_of(large, Reading::kMxfp4W4A8));
  }
}

// All layers listed as dense, or no experts stated: layers that are added must not become mixtures.
TEST(Inflate, AQwen3MoeWithoutExpertsStaysOne) {
  const TemporaryFolder folder;
  const TinyModelOptions options = {.model_type = "qwen3_moe", .dense_layers = {0, 1}};
  test::write_tiny_llama(folder.path() / "small", options);
  expect_same_function(options, 2, 5);
  inflate_model(folder.path() / "small", folder.path() / "large", {.depth = 5});
  EXPECT_EQ(logits_of(folder.path() / "small"), logits_of(folder.path() / "large"));
  const fs::path config = folder.path() / "small" / "config.json";
  json fields = json::parse(std::ifstream(config));
  fields["mlp_only_layers"] = json::array();
  fields["num_experts"] = 0;
  std::ofstream(config) << fields;
  inflate_model(folder.path() / "small", folder.path() / "none", {.depth = 5});
  EXPECT_EQ(logits_of(folder.path() / "small"), logits_of(folder.path() / "none"));
}

TEST(Inflate, AGemmaIsNotMadeWider) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "small", {.model_type = "gemma2", .sliding_window = 16});
  expect_bad_input([&] { inflate_model(folder.path() / "small", folder.path() / "large", {.width = 2}); },
                   {"small", "wider"});
}

TEST(Inflate, AModelWithLearnedPositionsIsRefused) {
  for (const char* type : {"gpt2", "opt"}) {
    const TemporaryFolder folder;
    test::write_tiny_llama(folder.path() / "small", {.model_type = type});
    expect_bad_input([&] { inflate_model(folder.path() / "small", folder.path() / "large", {.depth = 4}); },
                     {"small", "learned positions", type});
  }
}

TEST(Inflate, AQuantizedModelIsRefusedBeforeAnythingIsWritten) {
  const TemporaryFolder folder;
  test::quantized_folder({.method = "gptq", .bits = 4, .group_size = 64}).write(folder.path() / "model");
  expect_bad_input([&] { inflate_model(folder.path() / "model", folder.path() / "larger", {.width = 2}); },
                   {"is quantized", "give the original"});
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "larger"));
}

TEST(Inflate, DraftsStayWhatTheyWere) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "small");
  inflate_model(folder.path() / "small", folder.path() / "large", {.width = 4});
  // Rounding to int8 is coarser than BF16, so a last place that flips shows more.
  EXPECT_LT(largest_difference(logits_of(folder.path() / "small", Reading::kMxfp4W4A8),
                               logits_of(folder.path() / "large", Reading::kMxfp4W4A8)),
            0.05f);
}

TEST(Inflate, SpreadsTheAddedLayers) {
  EXPECT_EQ(inflated_layers(3, 3), (std::vector<InflatedLayer>{{0, false}, {1, false}, {2, false}}));
  EXPECT_EQ(inflated_layers(3, 4),
            (std::vector<InflatedLayer>{{0, false}, {1, false}, {1, true}, {2, false}}));
  EXPECT_EQ(inflated_layers(1, 3), (std::vector<InflatedLayer>{{0, false}, {0, true}, {0, true}}));
  for (const int32_t layers : {1, 2, 7, 8, 32}) {
    for (int32_t depth = layers; depth < 4 * layers; ++depth) {
      const std::vector<InflatedLayer> made = inflated_layers(layers, depth);
      ASSERT_EQ(made.size(), static_cast<size_t>(depth));
      std::vector<int32_t> copies(static_cast<size_t>(layers));
      int32_t real = 0;
      for (const InflatedLayer& layer : made) {
        if (layer.adds_nothing) {
          ++copies[static_cast<size_t>(layer.source)];
          EXPECT_EQ(layer.source, real - 1);
        } else {
          EXPECT_EQ(layer.source, real++);
        }
      }
      EXPECT_EQ(real, layers);
      const auto [fewest, most] = std::minmax_element(copies.begin(), copies.end());
      EXPECT_LE(*most - *fewest, 1);
    }
  }
}

TEST(Inflate, KeepsTypesFieldsAndFiles) {
  const TemporaryFolder folder;
  const fs::path small = folder.path() / "small";
  const fs::path large = folder.path() / "large";
  test::write_tiny_llama(small, {.dtype = DType::kF32});
  json config = json::parse(test::read_file(small / "config.json"));
  config["unknown"] = {1, 2};
  folder.write("small/config.json", config.dump());
  folder.write("small/generation_config.json", R"({"eos_token_id": [2, 3]})");
  folder.write("small/tokenizer_config.json", R"({"a": 1})");
  folder.write("small/LICENSE", "free");
  folder.write("small/README.md", "another text");

  const auto report = inflate_model(small, large, {.width = 2, .depth = 3});
  ASSERT_TRUE(report.has_value());
  const Checkpoint checkpoint = open_checkpoint(large);
  EXPECT_EQ(checkpoint.config.eos_tokens, (std::vector<int32_t>{2, 3}));
  int64_t parameters = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    EXPECT_EQ(tensor.dtype, DType::kF32) << name;
    parameters += tensor.rows() * tensor.columns();
  }
  EXPECT_EQ(report->parameters, parameters);
  EXPECT_EQ(report->bytes, 4 * static_cast<uint64_t>(parameters));
  EXPECT_EQ(report->files, 1);
  json changed = config;
  changed["hidden_size"] = 256;
  changed["intermediate_size"] = 512;
  changed["num_hidden_layers"] = 3;
  changed["num_attention_heads"] = 8;
  changed["num_key_value_heads"] = 4;
  changed["verbatim_inflated"] = {{"from", "small"}, {"width", 2}, {"depth", 3}};
  EXPECT_EQ(json::parse(test::read_file(large / "config.json")), changed);
  for (const char* name : {"generation_config.json", "tokenizer_config.json", "LICENSE"}) {
    EXPECT_EQ(test::read_file(large / name), test::read_file(small / name));
  }
  const std::string readme = test::read_file(large / "README.md");
  EXPECT_NE(readme.find("inflate --width 2 --depth 3"), std::string::npos) << readme;
}

TEST(Inflate, KeepsWindowsAsTheyAre) {
  const TemporaryFolder folder;
  const fs::path small = folder.path() / "small";
  TinyModelOptions options;
  options.model_type = "qwen2";
  const auto window_after = [&](const std::string& name, const json& fields) {
    test::write_tiny_llama(small, options);
    json config = json::parse(test::read_file(small / "config.json"));
    config.update(fields);
    folder.write("small/config.json", config.dump());
    inflate_model(small, folder.path() / name, {.depth = 40});
    return open_checkpoint(folder.path() / name).config.sliding_window;
  };
  EXPECT_EQ(window_after("off", {{"use_sliding_window", false}, {"max_window_layers", 1}}), 0);
  EXPECT_EQ(window_after("beyond",
                         {{"use_sliding_window", true}, {"max_window_layers", 2}, {"sliding_window", 16}}),
            0);
  EXPECT_EQ(window_after("unsaid", {{"use_sliding_window", true}, {"max_window_layers", nullptr}}), 0);
  EXPECT_EQ(
      window_after("all", {{"use_sliding_window", true}, {"max_window_layers", 0}, {"sliding_window", 16}}),
      16);
  EXPECT_EQ(window_after("types", {{"use_sliding_window", true},
                                   {"sliding_window", 16},
                                   {"layer_types", {"sliding_attention", "sliding_attention"}}}),
            16);
}

TEST(Inflate, WritesAndReadsShards) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "small", {.shards = 3});
  const auto whole =
      inflate_model(folder.path() / "small", folder.path() / "whole", {.width = 2, .depth = 3});
  const auto cut = inflate_model(folder.path() / "small", folder.path() / "cut",
                                 {.width = 2, .depth = 3, .shard_bytes = 300'000});
  ASSERT_TRUE(whole && cut);
  EXPECT_GT(cut->files, 3);
  const Checkpoint one = open_checkpoint(folder.path() / "whole");
  const Checkpoint many = open_checkpoint(folder.path() / "cut");
  EXPECT_EQ(many.files.size(), static_cast<size_t>(cut->files));
  ASSERT_EQ(one.tensors.size(), many.tensors.size());
  for (const auto& [name, tensor] : one.tensors) {
    EXPECT_TRUE(std::ranges::equal(tensor.data, many.tensors.at(name).data)) << name;
  }
  const json index = json::parse(test::read_file(folder.path() / "cut" / "model.safetensors.index.json"));
  EXPECT_EQ(index["metadata"]["total_size"], cut->bytes);
}

TEST(Inflate, RefusesWeightsThatCannotBeDivided) {
  const TemporaryFolder folder;
  const fs::path small = folder.path() / "small";
  const TinyModelOptions options = {.dtype = DType::kF16};
  test::write_tiny_llama(small, options);
  std::vector<NamedTensor> tensors = test::tiny_tensors(options);
  for (NamedTensor& tensor : tensors) {
    // Half of the first is a whole multiple of 2^-24, the smallest number of F16; half of the second is not.
    for (float& value : tensor.values) value = value < 0.0f ? -0x1p-20f : 0.5f;
    if (tensor.name == "model.layers.1.mlp.up_proj.weight") tensor.values[5] = 0x3p-24f;
  }
  folder.write("small/model.safetensors", test::safetensors_file(tensors, DType::kF16));
  expect_bad_input([&] { inflate_model(small, folder.path() / "large", {.width = 2}); },
                   {"small", "model.layers.1.mlp.up_proj.weight", "F16", "divided by 2", "smaller width"});
  EXPECT_FALSE(fs::exists(folder.path() / "large"));
  EXPECT_TRUE(inflate_model(small, folder.path() / "deep", {.depth = 4}).has_value());  // divides nothing
  folder.write("small/model.safetensors", test::safetensors_file(tensors, DType::kF32));
  EXPECT_TRUE(inflate_model(small, folder.path() / "large", {.width = 8}).has_value());
}

TEST(Inflate, RefusesWhatItCannotEnlarge) {
  const TemporaryFolder folder;
  const fs::path small = folder.path() / "small";
  const fs::path large = folder.path() / "large";
  test::write_tiny_llama(small);
  expect_bad_input([&] { inflate_model(folder.path() / "absent", large, {.width = 2}); },
                   {"absent does not exist"});
  expect_bad_input([&] { inflate_model(small, small, {.width = 2}); }, {"small", "not empty"});
  expect_bad_input([&] { inflate_model(small, large, {.depth = 1}); }, {"small", "2 layers", "depth of 1"});
  expect_bad_input([&] { inflate_model(small, large, {.depth = 2'000'000'000}); }, {"2000000000", "1024"});
  for (const int32_t width : {-1, 0, 3, 16})
    EXPECT_THROW(inflate_model(small, large, {.width = width}), Error);
  test::write_tiny_gguf(folder.path() / "tiny.gguf");
  expect_bad_input([&] { inflate_model(folder.path() / "tiny.gguf", large, {.width = 2}); },
                   {"tiny.gguf is a GGUF file", "safetensors"});
  test::write_tiny_llama(folder.path() / "wide",
                         {.hidden_size = 512, .heads = 256, .kv_heads = 256, .head_dim = 2});
  expect_bad_input([&] { inflate_model(folder.path() / "wide", large, {.width = 8}); },
                   {"large", "number of heads is 2048", "1024"});
  EXPECT_FALSE(fs::exists(large));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 3);
}

TEST(Inflate, LeavesNothingWhenCancelled) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "small");
  for (const int last : {0, 1, 20}) {
    int asked = 0;
    double done = 0.0;
    InflateOptions options = {.width = 2, .depth = 4};
    options.progress = [&done](double fraction) {
      EXPECT_GE(fraction, done);
      done = fraction;
    };
    options.cancelled = [&] { return asked++ == last; };
    EXPECT_FALSE(inflate_model(folder.path() / "small", folder.path() / "large", options).has_value());
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
    EXPECT_GT(done, 0.0);
    EXPECT_LT(done, 1.0);
  }
}

TEST(Inflate, TheDefaultModelSaysTheSame) {
  const TemporaryFolder folder;
  inflate_model(test::default_model(), folder.path() / "large", {.width = 2, .depth = 10});
  const auto greedy = [](const fs::path& path) {
    const Model model = test::load_model(path, {"full"});
    GenerateOptions options;
    options.sampling.temperature = 0.0f;
    options.max_tokens = 32;
    options.ignore_eos = true;
    std::vector<std::vector<int32_t>> texts;
    for (const char* prompt : {"def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number.\"\"\"\n",
                               "import os\nimport sys\n\n\nclass "}) {
      Session session(model, 128, 2);
      texts.push_back(session.generate(model.encode(prompt), options, load_recipe("plain")).tokens);
    }
    return texts;
  };
  const auto small = greedy(test::default_model());
  ASSERT_EQ(small.front().size(), 32u);
  EXPECT_EQ(greedy(folder.path() / "large"), small);
}

}  // namespace
}  // namespace inflate_test
}  // namespace verbatim
