#include "verbatim/inspect.h"

#include "base/error.h"
#include "container/load.h"
#include "text/chat_format.h"
#include "text/tokenizer.h"
#include "tools/inspect_packed.h"
#include "tools/inspect_sparse.h"
#include "tools/memory_estimate.h"

namespace verbatim {

namespace {

VocabularyReport report_vocabulary(const TokenizerSource& source) {
  const auto tokenizer = load_tokenizer(source);
  return {.kind = tokenizer->kind(),
          .tokens = tokenizer->vocab_size(),
          .bos = tokenizer->bos(),
          .eos = tokenizer->eos(),
          .chat_format = detect_chat_format(*tokenizer).name};
}

std::string rope_scaling_name(const ModelConfig& config) {
  if (!config.rope_frequency_factors.empty()) return "factors";
  switch (config.rope_scaling.kind) {
    case RopeScaling::Kind::kNone:
      return "none";
    case RopeScaling::Kind::kLinear:
      return "linear";
    case RopeScaling::Kind::kLlama3:
      return "llama3";
    case RopeScaling::Kind::kDynamic:
      return "dynamic";
    case RopeScaling::Kind::kYarn:
      return "yarn";
    case RopeScaling::Kind::kLongRope:
      return "longrope";
  }
  return "none";
}

/// Describes the files and the vocabulary of a checkpoint, and all that its config says.
ModelReport report_checkpoint(const Checkpoint& checkpoint) {
  const ModelConfig& config = checkpoint.config;
  ModelReport report;
  report.path = checkpoint.path;
  report.file_format = checkpoint.format;
  report.files = std::ssize(checkpoint.files);
  for (const auto& file : checkpoint.files) report.file_bytes += std::ssize(file->bytes());
  report.architecture = architecture_name(config.architecture);
  report.layers = config.layers;
  report.hidden_size = config.hidden_size;
  report.heads = config.heads;
  report.kv_heads = config.kv_heads;
  report.head_dim = config.head_dim;
  report.intermediate_size = config.intermediate_size;
  report.experts = config.experts.count;
  report.experts_used = config.experts.used;
  report.expert_intermediate_size = config.experts.intermediate_size;
  report.dense_layers = config.dense_layers;
  report.vocab_size = config.vocab_size;
  report.context = config.context;
  report.rope_theta = config.rope_theta;
  report.rope_scaling = rope_scaling_name(config);
  report.rope_scaling_factor = config.rope_scaling.factor;
  report.rope_scaling_context = config.rope_scaling.original_context;
  if (config.sliding_window > 0) report.sliding_window = config.sliding_window;
  report.rotary_dim = rotated_elements(config);
  report.windowless_layers = config.windowless_layers;
  report.unrotated_layers = config.unrotated_layers;
  report.tied_embeddings = config.tied_embeddings;
  report.qkv_bias = config.qkv_bias;
  report.head_sinks = config.head_sinks;
  report.head_norm = head_norm_name(config.head_norm);
  report.block_norms = block_norms_name(config.block_norms);
  report.layer_norm = config.layer_norm;
  report.plain_mlp = config.plain_mlp;
  report.learned_positions = config.learned_positions;
  report.activation = activation_name(config.activation);
  report.window_rope_theta = config.window_rope_theta;
  if (config.soft_caps.scores > 0) report.score_cap = config.soft_caps.scores;
  if (config.soft_caps.logits > 0) report.logit_cap = config.soft_caps.logits;
  report.scales = {{"embedding", config.scales.embedding},
                   {"residual", config.scales.residual},
                   {"attention", config.scales.attention},
                   {"logits", config.scales.logits}};
  std::erase_if(report.scales,
                [](const auto& scale) { return scale.second == (scale.first == "attention" ? 0.0f : 1.0f); });
  if (checkpoint.tokenizer.kind != TokenizerSource::Kind::kNone) {
    report.vocabulary = report_vocabulary(checkpoint.tokenizer);
  }
  return report;
}

ModelReport inspect_checkpoint(const std::filesystem::path& path) {
  const Checkpoint checkpoint = open_checkpoint(path);
  ModelReport report = report_checkpoint(checkpoint);
  for (const auto& [name, tensor] : checkpoint.tensors) {
    const TensorReport& added = report.tensors.emplace_back(
        TensorReport{name, dtype_name(tensor.dtype), tensor.shape, tensor.stored_size()});
    TensorGroup& group = report.types[added.type];
    ++group.count;
    group.bytes += added.bytes;
    group.weights += tensor.rows() * tensor.columns();
    report.parameters += tensor.rows() * tensor.columns();
  }
  report.memory = estimate_memory(checkpoint);
  return report;
}

ModelReport inspect_packed(const std::filesystem::path& path, const InspectOptions& options) {
  const Container container = open_container(path);
  ModelReport report = report_checkpoint(checkpoint_of(container));
  report.packed = report_packed(container);
  report.packed->sparse = report_sparse_parts(container, options.sensitivities);
  report.parameters = parameters_of(container.header);
  report.memory = estimate_memory(container);
  if (!options.verify) return report;
  bool cancelled = false;
  verify_container(container, [&](double fraction) {
    if (options.progress) options.progress(fraction);
    cancelled = options.cancelled && options.cancelled();
    return !cancelled;
  });
  report.packed->verified = !cancelled;
  return report;
}

}  // namespace

ModelReport inspect_model(const std::filesystem::path& path, const InspectOptions& options) {
  if (is_packed(path)) return inspect_packed(path, options);
  if (options.verify) {
    fail(ErrorKind::kUsage, "only .vbt files have checksums to verify; {} is none", path.string());
  }
  if (!options.sensitivities.empty()) {
    fail(ErrorKind::kUsage,
         "sensitivities were given, but only .vbt files in squeeze3 or squeeze4 have sparse parts that hold "
         "some of them; {} is none",
         path.string());
  }
  return inspect_checkpoint(path);
}

}  // namespace verbatim
