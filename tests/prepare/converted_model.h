#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/bad_input.h"
#include "checkpoint/checkpoint.h"
#include "support/engine_support.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"
#include "verbatim/convert.h"

namespace verbatim::test {

// What tests of converted models have in common.

/// A tiny model of a family, with windows where the family has them, and with experts from 10 on, which come
/// behind 9, not behind 1.
inline TinyModelOptions family_options(const std::string& family) {
  TinyModelOptions options;
  options.model_type = family;
  options.layers = family == "smollm3" ? 4 : family == "gemma3_text" ? 7 : 3;
  if (family == "mixtral" || family == "qwen3_moe" || family == "gpt_oss") {
    options.layers = 2;
    options.intermediate_size = 64;
    options.experts = 12;
  }
  if (family == "gpt2") options.kv_heads = options.heads;
  options.tied = family == "starcoder2";
  if (family == "mistral" || family.starts_with("gemma") || family == "phi3" || family == "gpt_oss" ||
      family == "starcoder2") {
    options.sliding_window = 16;
  }
  return options;
}

/// The logits of a fixed text longer than the windows.
inline std::vector<float> logits_of(const std::filesystem::path& model) {
  const Decoder decoder = load_decoder(model);
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 40; ++i) tokens.push_back((i * 37 + 11) % decoder.config().vocab_size);
  ThreadTeam team(2);
  return all_logits(decoder, tokens, 16, Reading::kFull, team);
}

/// Whether numbers are the same to the bit.
inline bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(std::as_bytes(std::span(a)), std::as_bytes(std::span(b)));
}

/// Norms that a folder stores less 1 may lose bits that are too small beside 1, and that no logit depends on.
inline bool may_round(const std::string& name, const ModelConfig& config) {
  return config.norms_less_one && name.ends_with("norm.weight");
}

/// Expects the models at two paths to have one config and tensors of the same types and bytes.
inline void expect_same_tensors(const std::filesystem::path& a, const std::filesystem::path& b) {
  const Checkpoint first = open_checkpoint(a);
  const Checkpoint second = open_checkpoint(b);
  EXPECT_EQ(first.config, second.config);
  ASSERT_EQ(first.tensors.size(), second.tensors.size());
  for (const auto& [name, tensor] : first.tensors) {
    if (may_round(name, first.config)) continue;
    const TensorView& other = second.tensors.at(name);
    EXPECT_EQ(dtype_name(tensor.dtype), dtype_name(other.dtype)) << name;
    EXPECT_EQ(tensor.shape, other.shape) << name;
    EXPECT_TRUE(std::ranges::equal(tensor.data, other.data)) << name;
    EXPECT_TRUE(std::ranges::equal(tensor.scales, other.scales)) << name;
  }
}

/// A folder to convert in, with a tiny model in either layout.
class ConvertTest : public ::testing::Test {
 protected:
  void write(const TinyModelOptions& options = {}) const { write_tiny_llama(model_, options); }
  /// Sets a field of the model's config.json.
  void set(const std::string& key, const nlohmann::json& value) const {
    nlohmann::json config = nlohmann::json::parse(read_file(model_ / "config.json"));
    config[key] = value;
    std::ofstream(model_ / "config.json") << config.dump();
  }
  void expect_refused(const std::filesystem::path& model, std::initializer_list<std::string> words) const {
    const std::filesystem::path target =
        folder_.path() / (model.extension() == ".gguf" ? "result" : "result.gguf");
    expect_bad_input([&] { convert_model(model, target); }, words);
    expect_nothing_left(target);
  }
  void expect_nothing_left(const std::filesystem::path& target) const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      EXPECT_FALSE(entry.path().filename().string().starts_with(target.filename().string())) << entry.path();
    }
  }

  TemporaryFolder folder_;
  std::filesystem::path model_ = folder_.path() / "model";
};

}  // namespace verbatim::test
