#include "checkpoint/check_tensors.h"

#include <set>

#include "base/error.h"
#include "base/printable.h"
#include "checkpoint/block_norms.h"
#include "checkpoint/expert_names.h"
#include "checkpoint/tensor_names.h"

namespace verbatim {

namespace {

/// Checks expected tensors and remembers their names, so that unexpected tensors can be found.
class Checker {
 public:
  explicit Checker(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  void expect(const std::string& name, std::initializer_list<int64_t> shape) {
    checkpoint_.tensor(name, shape);
    expected_.insert(name);
  }

  /// Remembers a tensor that may be there and is not read.
  void allow(const std::string& name) { expected_.insert(name); }

  /// All tensors must have been expected.
  void refuse_others() const {
    for (const auto& [name, tensor] : checkpoint_.tensors) {
      if (expected_.contains(name)) continue;
      bad_input("{}: tensor {} has no place in a {} model; this variant is not supported",
                checkpoint_.path.string(), printable(name),
                architecture_name(checkpoint_.config.architecture));
    }
  }

 private:
  const Checkpoint& checkpoint_;
  std::set<std::string> expected_;
};

void check_experts(Checker& checker, const ModelConfig& config, const std::string& prefix) {
  const ExpertNames names = expert_names(config);
  const int64_t hidden = config.hidden_size;
  const int64_t inner = config.experts.intermediate_size;
  checker.expect(prefix + names.router_weight(), {config.experts.count, hidden});
  const bool biases = config.experts.biases;
  if (biases) checker.expect(prefix + names.router_bias(), {config.experts.count});
  for (int32_t e = 0; e < config.experts.count; ++e) {
    const auto expect = [&](std::string_view matrix, int64_t rows, int64_t columns) {
      checker.expect(prefix + names.weight(e, matrix), {rows, columns});
      if (biases) checker.expect(prefix + names.bias(e, matrix), {rows});
    };
    if (config.fused_gate_up) {
      expect(names.gate_up, 2 * inner, hidden);
    } else {
      expect(names.gate, inner, hidden);
      expect(names.up, inner, hidden);
    }
    expect(names.down, hidden, inner);
  }
}

void check_feed_forward(Checker& checker, const ModelConfig& config, const std::string& prefix) {
  const int64_t hidden = config.hidden_size;
  const int64_t intermediate = config.intermediate_size;
  const TensorNames names = tensor_names(config);
  const std::string up = fmt::format("{}{}{}", prefix, names.mlp, names.up);
  const std::string down = fmt::format("{}{}{}", prefix, names.mlp, names.down);
  if (config.fused_gate_up) {
    checker.expect(prefix + "mlp.gate_up_proj.weight", {2 * intermediate, hidden});
  } else {
    if (!config.plain_mlp) checker.expect(prefix + "mlp.gate_proj.weight", {intermediate, hidden});
    checker.expect(up + ".weight", {intermediate, hidden});
  }
  checker.expect(down + ".weight", {hidden, intermediate});
  if (!config.mlp_bias) return;
  checker.expect(up + ".bias", {intermediate});
  checker.expect(down + ".bias", {hidden});
}

void check_layer(Checker& checker, const ModelConfig& config, int32_t layer) {
  const TensorNames names = tensor_names(config);
  const std::string prefix = names.layer(layer);
  const std::string attention = prefix + std::string(names.attention);
  const int64_t hidden = config.hidden_size;
  const int64_t query = int64_t{config.heads} * config.head_dim;
  const int64_t key = int64_t{config.kv_heads} * config.head_dim;
  const BlockNormNames norms = block_norm_names(config);
  for (const std::string_view norm :
       {norms.before_attention, norms.after_attention, norms.before_mlp, norms.after_mlp}) {
    if (norm.empty()) continue;
    checker.expect(fmt::format("{}{}.weight", prefix, norm), {hidden});
    if (config.layer_norm) checker.expect(fmt::format("{}{}.bias", prefix, norm), {hidden});
  }
  if (config.fused_qkv) {
    const std::string qkv = attention + std::string(names.qkv);
    checker.expect(qkv + ".weight", {query + 2 * key, hidden});
    if (config.qkv_bias) checker.expect(qkv + ".bias", {query + 2 * key});
  } else {
    checker.expect(attention + "q_proj.weight", {query, hidden});
    checker.expect(attention + "k_proj.weight", {key, hidden});
    checker.expect(attention + "v_proj.weight", {key, hidden});
  }
  const std::string output = attention + std::string(names.output);
  checker.expect(output + ".weight", {hidden, query});
  if (config.qkv_bias && !config.fused_qkv) {
    checker.expect(attention + "q_proj.bias", {query});
    checker.expect(attention + "k_proj.bias", {key});
    checker.expect(attention + "v_proj.bias", {key});
  }
  if (config.output_bias) checker.expect(output + ".bias", {hidden});
  if (config.head_sinks) checker.expect(prefix + "self_attn.sinks", {config.heads});
  if (config.head_norm != HeadNorm::kNone) {
    const bool whole = config.head_norm == HeadNorm::kWhole;
    checker.expect(prefix + "self_attn.q_norm.weight", {whole ? query : config.head_dim});
    checker.expect(prefix + "self_attn.k_norm.weight", {whole ? key : config.head_dim});
  }
  if (has_experts(config, layer)) {
    check_experts(checker, config, prefix);
  } else {
    check_feed_forward(checker, config, prefix);
  }
}

}  // namespace

void check_tensors(const Checkpoint& checkpoint) {
  const ModelConfig& config = checkpoint.config;
  Checker checker(checkpoint);
  const TensorNames names = tensor_names(config);
  const auto weight = [](std::string_view name) { return fmt::format("{}.weight", name); };
  checker.expect(weight(names.embedding), {config.vocab_size, config.hidden_size});
  if (config.learned_positions) {
    checker.expect(weight(names.positions), {names.first_position + config.context, config.hidden_size});
  }
  for (int32_t layer = 0; layer < config.layers; ++layer) {
    check_layer(checker, config, layer);
  }
  checker.expect(weight(names.final_norm), {config.hidden_size});
  if (config.layer_norm) checker.expect(fmt::format("{}.bias", names.final_norm), {config.hidden_size});
  if (config.tied_embeddings) {
    checker.allow("lm_head.weight");  // some files repeat the embedding under this name
  } else {
    checker.expect("lm_head.weight", {config.vocab_size, config.hidden_size});
  }
  checker.refuse_others();
}

}  // namespace verbatim
