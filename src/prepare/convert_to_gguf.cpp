#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "checkpoint/check_tensors.h"
#include "checkpoint/gguf_experts.h"
#include "checkpoint/gguf_model.h"
#include "checkpoint/gguf_writer.h"
#include "checkpoint/rope_scaling.h"
#include "prepare/convert.h"
#include "prepare/converted_experts.h"
#include "prepare/converted_tensors.h"
#include "prepare/converted_vocabulary.h"
#include "text/gguf_tokenizer.h"

namespace verbatim {

namespace {

/// Adds what a config says under the names of GGUF. What has no name there is found out when the file is read
/// again.
class ConfigMetadata {
 public:
  ConfigMetadata(const ModelConfig& config, GgufMetadata& metadata)
      : config_(config), metadata_(metadata), architecture_(gguf_architecture_name(config.architecture)) {}

  void add() {
    metadata_.add("general.architecture", architecture_);
    add_sizes();
    if (!config_.learned_positions) add_rope();
    add_family();
    if (config_.bos_token) metadata_.add("tokenizer.ggml.bos_token_id", *config_.bos_token);
  }

 private:
  template <typename T>
  void field(const char* name, T value) {
    metadata_.add(architecture_ + "." + name, value);
  }

  void add_sizes() {
    field("block_count", config_.layers);
    field("context_length", config_.context);
    field("embedding_length", config_.hidden_size);
    field("feed_forward_length", config_.intermediate_size);
    field("attention.head_count", config_.heads);
    field("attention.head_count_kv", config_.kv_heads);
    field("attention.key_length", config_.head_dim);
    field("attention.value_length", config_.head_dim);
    field(config_.layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon",
          config_.rms_norm_epsilon);
    field("vocab_size", config_.vocab_size);
    if (config_.experts.count == 0) return;
    field("expert_count", config_.experts.count);
    field("expert_used_count", config_.experts.used);
    if (config_.architecture != Architecture::kMixtral) {
      field("expert_feed_forward_length", config_.experts.intermediate_size);
    }
  }

  void add_rope() {
    field("rope.dimension_count", rotated_elements(config_));
    field("rope.freq_base", config_.rope_theta);
    const RopeScaling& scaling = config_.rope_scaling;
    if (scaling.kind == RopeScaling::Kind::kLinear) {
      field("rope.scaling.type", "linear");
      field("rope.scaling.factor", scaling.factor);
      // So that the context, which is the scaled one, is not scaled again.
      field("rope.scaling.original_context_length",
            static_cast<int32_t>(static_cast<float>(config_.context) / scaling.factor));
    }
    if (scaling.kind == RopeScaling::Kind::kYarn) {
      field("rope.scaling.type", "yarn");
      field("rope.scaling.factor", scaling.factor);
      field("rope.scaling.original_context_length", scaling.original_context);
      field("rope.scaling.attn_factor",
            scaling.yarn.attention_factor / yarn_attention_factor(scaling.factor));
      field("rope.scaling.yarn_beta_fast", scaling.yarn.beta_fast);
      field("rope.scaling.yarn_beta_slow", scaling.yarn.beta_slow);
    }
    if (scaling.kind == RopeScaling::Kind::kLongRope) {
      field("rope.scaling.original_context_length", scaling.original_context);
      field("rope.scaling.attn_factor", scaling.long_rope.attention_factor);
    }
    if (scaling.kind == RopeScaling::Kind::kLlama3) add_llama3_scaling(scaling);
  }

  void add_llama3_scaling(const RopeScaling& scaling) {
    const std::string prefix = kLlama3Scaling;
    metadata_.add(prefix + "factor", scaling.factor);
    metadata_.add(prefix + "low_freq_factor", scaling.low_frequency_factor);
    metadata_.add(prefix + "high_freq_factor", scaling.high_frequency_factor);
    metadata_.add(prefix + "original_context_length", scaling.original_context);
  }

  void add_family() {
    const Architecture architecture = config_.architecture;
    const bool gemma3 = architecture == Architecture::kGemma3;
    const bool gemma = gemma3 || architecture == Architecture::kGemma2;
    const bool gpt_oss = architecture == Architecture::kGptOss;
    const bool has_window = config_.sliding_window > 0 && architecture != Architecture::kQwen3Moe;
    if (has_window || gemma || gpt_oss) field("attention.sliding_window", config_.sliding_window);
    if ((gemma || gpt_oss) && !config_.windowless_layers.empty()) {
      field("attention.sliding_window_pattern", config_.windowless_layers.front() + 1);
    }
    if (architecture == Architecture::kGemma2) {
      field("attn_logit_softcapping", config_.soft_caps.scores);
    }
    if (gemma) field("final_logit_softcapping", config_.soft_caps.logits);
    if (gemma3) field("rope.freq_base_swa", config_.window_rope_theta);
    if (architecture == Architecture::kGranite) {
      field("embedding_scale", config_.scales.embedding);
      field("residual_scale", config_.scales.residual);
      field("attention.scale", config_.scales.attention);
      field("logit_scale", 1.0f / config_.scales.logits);
    }
  }

  const ModelConfig& config_;
  GgufMetadata& metadata_;
  std::string architecture_;
};

/// Adds the tokens with which generation ends: that of the vocabulary under the first name, the end of a
/// message, which its text tells, under the last one, and others under names that are free. The first name is
/// always given where there is a token at all.
void add_ends(const std::vector<int32_t>& ends, const Tokenizer* tokenizer, GgufMetadata& metadata) {
  const auto place = [tokenizer](int32_t token) {
    if (tokenizer == nullptr || token == tokenizer->eos()) return 0;
    const bool known = token < tokenizer->vocab_size();
    return known && tokenizer->vocabulary_text(token).find("eom") != std::string_view::npos ? 2 : 1;
  };
  std::array<std::optional<int32_t>, std::size(kEndTokens)> named;
  std::vector<int32_t> others;
  for (const int32_t token : ends) {
    std::optional<int32_t>& own = named[static_cast<size_t>(place(token))];
    if (own) {
      others.push_back(token);
    } else {
      own = token;
    }
  }
  auto next = others.begin();
  for (std::optional<int32_t>& name : named) {
    if (!name && next != others.end()) name = *next++;
  }
  if (!named[0]) std::swap(named[0], named[1] ? named[1] : named[2]);
  for (size_t i = 0; i < named.size(); ++i) {
    if (named[i]) metadata.add(kEndTokens[i], *named[i]);
  }
}

/// The tensors that state how positions are scaled.
std::vector<ConvertedTensor> rope_tensors(const ModelConfig& config) {
  const auto made = [](const char* name, const std::vector<float>& values) {
    return ConvertedTensor{.entry = {.name = name, .dtype = DType::kF32, .shape = {std::ssize(values)}},
                           .sources = {},
                           .source_name = name,
                           .values = values};
  };
  const RopeScaling& scaling = config.rope_scaling;
  if (scaling.kind == RopeScaling::Kind::kLlama3) return {made(kRopeFactors, llama3_divisors(config))};
  if (scaling.kind != RopeScaling::Kind::kLongRope) return {};
  return {made(kShortFactors, scaling.long_rope.short_factors),
          made(kLongFactors, scaling.long_rope.long_factors)};
}

std::vector<ConvertedTensor> gguf_tensors(const Checkpoint& checkpoint) {
  std::vector<ConvertedTensor> tensors = rope_tensors(checkpoint.config);
  for (const auto& [name, view] : checkpoint.tensors) {
    if (checkpoint.config.tied_embeddings && name == "lm_head.weight") continue;  // the embedding once more
    if (expert_of(name, checkpoint.config)) continue;
    require_gguf_type(name, view, checkpoint);
    const bool small = is_small(name, view, checkpoint);
    ConvertedTensor tensor{.entry = {.name = gguf_name_of(name, checkpoint),
                                     .dtype = small ? DType::kF32 : view.dtype,
                                     .shape = view.shape},
                           .sources = {view},
                           .source_name = name,
                           .small = small};
    set_layout(tensor, checkpoint, gguf_interleaves(checkpoint.config.architecture), false);
    tensors.push_back(std::move(tensor));
  }
  for (ConvertedTensor& stack : gguf_experts(checkpoint)) tensors.push_back(std::move(stack));
  return tensors;
}

}  // namespace

std::optional<ConvertedModel> convert_to_gguf(const Checkpoint& checkpoint,
                                              const std::filesystem::path& target,
                                              const ConvertModelOptions& options) {
  require_convertible(checkpoint);
  const std::vector<ConvertedTensor> tensors = gguf_tensors(checkpoint);
  const bool vocabulary = checkpoint.tokenizer.kind != TokenizerSource::Kind::kNone;
  const auto tokenizer = vocabulary ? load_tokenizer(checkpoint.tokenizer) : nullptr;
  GgufMetadata metadata;
  ConfigMetadata(checkpoint.config, metadata).add();
  add_ends(checkpoint.config.eos_tokens, tokenizer.get(), metadata);
  VocabularyLoss loss;
  if (vocabulary) loss = add_gguf_vocabulary(checkpoint.tokenizer, checkpoint.config.vocab_size, metadata);

  std::vector<TensorEntry> entries;
  for (const ConvertedTensor& tensor : tensors) entries.push_back(tensor.entry);
  GgufWriter writer(target, metadata, entries);
  ConvertedModel result{.warnings = loss.warnings()};
  const auto write = [&writer](std::span<const std::byte> bytes) { writer.write(bytes); };
  if (!write_converted(checkpoint, tensors, write, options, result)) return std::nullopt;

  // What does not open as the same model is not handed out.
  const GgufFile written = open_gguf(writer.path());
  const Checkpoint converted = gguf_checkpoint(written, writer.path());
  require_same_config(checkpoint, converted.config, "GGUF");
  check_tensors(converted);
  if (vocabulary) {
    require_same_tokens(*tokenizer, *make_gguf_tokenizer(written, target.string()), loss,
                        checkpoint.path.string());
  }
  writer.keep();
  return result;
}

}  // namespace verbatim
