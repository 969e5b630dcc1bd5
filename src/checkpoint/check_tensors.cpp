#include "checkpoint/check_tensors.h"

#include <set>

#include "base/error.h"
#include "base/printable.h"

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

  /// All tensors with names under the prefix must have been expected.
  void refuse_others(const std::string& prefix) const {
    for (auto it = checkpoint_.tensors.lower_bound(prefix); it != checkpoint_.tensors.end(); ++it) {
      if (!it->first.starts_with(prefix)) break;
      if (!expected_.contains(it->first)) {
        bad_input("{}: tensor {} has no place in a {} model; this variant is not supported",
                  checkpoint_.path.string(), printable(it->first),
                  architecture_name(checkpoint_.config.architecture));
      }
    }
  }

 private:
  const Checkpoint& checkpoint_;
  std::set<std::string> expected_;
};

void check_layer(Checker& checker, const ModelConfig& config, const std::string& prefix) {
  const int64_t hidden = config.hidden_size;
  const int64_t intermediate = config.intermediate_size;
  const int64_t query = int64_t{config.heads} * config.head_dim;
  const int64_t key = int64_t{config.kv_heads} * config.head_dim;
  checker.expect(prefix + "input_layernorm.weight", {hidden});
  checker.expect(prefix + "self_attn.q_proj.weight", {query, hidden});
  checker.expect(prefix + "self_attn.k_proj.weight", {key, hidden});
  checker.expect(prefix + "self_attn.v_proj.weight", {key, hidden});
  checker.expect(prefix + "self_attn.o_proj.weight", {hidden, query});
  if (config.qkv_bias) {
    checker.expect(prefix + "self_attn.q_proj.bias", {query});
    checker.expect(prefix + "self_attn.k_proj.bias", {key});
    checker.expect(prefix + "self_attn.v_proj.bias", {key});
  }
  checker.expect(prefix + "post_attention_layernorm.weight", {hidden});
  checker.expect(prefix + "mlp.gate_proj.weight", {intermediate, hidden});
  checker.expect(prefix + "mlp.up_proj.weight", {intermediate, hidden});
  checker.expect(prefix + "mlp.down_proj.weight", {hidden, intermediate});
  checker.refuse_others(prefix);
}

}  // namespace

void check_tensors(const Checkpoint& checkpoint) {
  const ModelConfig& config = checkpoint.config;
  Checker checker(checkpoint);
  checker.expect("model.embed_tokens.weight", {config.vocab_size, config.hidden_size});
  for (int32_t layer = 0; layer < config.layers; ++layer) {
    check_layer(checker, config, fmt::format("model.layers.{}.", layer));
  }
  checker.expect("model.norm.weight", {config.hidden_size});
  if (!config.tied_embeddings) checker.expect("lm_head.weight", {config.vocab_size, config.hidden_size});
  if (checkpoint.has("lm_head.bias")) {
    bad_input("{}: tensor lm_head.bias has no place in a {} model; this variant is not supported",
              checkpoint.path.string(), architecture_name(config.architecture));
  }
}

}  // namespace verbatim
