#include "container/config_json.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/printable.h"

namespace verbatim {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr std::pair<RopeScaling::Kind, std::string_view> kScalingKinds[] = {
    {RopeScaling::Kind::kNone, "none"},     {RopeScaling::Kind::kLinear, "linear"},
    {RopeScaling::Kind::kLlama3, "llama3"}, {RopeScaling::Kind::kDynamic, "dynamic"},
    {RopeScaling::Kind::kYarn, "yarn"},     {RopeScaling::Kind::kLongRope, "longrope"}};

/// Calls visit(name, field) for every field. The bindings name all of them: one that is added to the struct
/// does not compile until it is added here.
template <typename Yarn, typename Visit>
void visit_yarn(Yarn& yarn, Visit&& visit) {
  auto& [attention_factor, beta_fast, beta_slow, truncate] = yarn;
  visit("attention_factor", attention_factor);
  visit("beta_fast", beta_fast);
  visit("beta_slow", beta_slow);
  visit("truncate", truncate);
}

template <typename Caps, typename Visit>
void visit_soft_caps(Caps& caps, Visit&& visit) {
  auto& [scores, logits] = caps;
  visit("scores", scores);
  visit("logits", logits);
}

template <typename Experts, typename Visit>
void visit_experts(Experts& experts, Visit&& visit) {
  auto& [count, used, intermediate_size, normalized, biases] = experts;
  visit("count", count);
  visit("used", used);
  visit("intermediate_size", intermediate_size);
  visit("normalized", normalized);
  visit.unless_usual("biases", biases, false);
}

template <typename Factors, typename Visit>
void visit_long_rope(Factors& factors, Visit&& visit) {
  auto& [short_factors, long_factors, attention_factor] = factors;
  visit("short_factors", short_factors);
  visit("long_factors", long_factors);
  visit("attention_factor", attention_factor);
}

template <typename Factors, typename Visit>
void visit_scales(Factors& scales, Visit&& visit) {
  auto& [embedding, residual, attention, logits] = scales;
  visit("embedding", embedding);
  visit("residual", residual);
  visit("attention", attention);
  visit("logits", logits);
}

template <typename Scaling, typename Visit>
void visit_scaling(Scaling& scaling, Visit&& visit) {
  auto& [kind, factor, low_frequency_factor, high_frequency_factor, original_context, yarn, long_rope] =
      scaling;
  visit("kind", kind);
  visit("factor", factor);
  visit("low_frequency_factor", low_frequency_factor);
  visit("high_frequency_factor", high_frequency_factor);
  visit("original_context", original_context);
  visit("yarn", yarn);
  visit("long_rope", long_rope);
}

template <typename Config, typename Visit>
void visit_config(Config& config, Visit&& visit) {
  auto& [architecture, hidden_size, intermediate_size, layers, heads, kv_heads, head_dim, vocab_size, context,
         rms_norm_epsilon, rope_theta, window_rope_theta, rope_scaling, rotary_dim, rope_frequency_factors,
         rope_interleaved, fused_qkv, fused_gate_up, sliding_window, windowless_layers, unrotated_layers,
         tied_embeddings, qkv_bias, output_bias, head_sinks, head_norm, block_norms, layer_norm,
         norms_less_one, activation, activation_limit, plain_mlp, mlp_bias, learned_positions, experts,
         dense_layers, scales, soft_caps, bos_token, eos_tokens, origin, quantization] = config;
  visit("architecture", architecture);
  visit("hidden_size", hidden_size);
  visit("intermediate_size", intermediate_size);
  visit("layers", layers);
  visit("heads", heads);
  visit("kv_heads", kv_heads);
  visit("head_dim", head_dim);
  visit("vocab_size", vocab_size);
  visit("context", context);
  visit("rms_norm_epsilon", rms_norm_epsilon);
  visit("rope_theta", rope_theta);
  visit.unless_usual("window_rope_theta", window_rope_theta, 0.0f);
  visit("rope_scaling", rope_scaling);
  visit.unless_usual("rotary_dim", rotary_dim, 0);
  visit("rope_frequency_factors", rope_frequency_factors);
  visit("rope_interleaved", rope_interleaved);
  visit.unless_usual("fused_qkv", fused_qkv, false);
  visit.unless_usual("fused_gate_up", fused_gate_up, false);
  visit("sliding_window", sliding_window);
  visit.unless_usual("windowless_layers", windowless_layers, {});
  visit.unless_usual("unrotated_layers", unrotated_layers, {});
  visit("tied_embeddings", tied_embeddings);
  visit("qkv_bias", qkv_bias);
  visit.unless_usual("output_bias", output_bias, false);
  visit.unless_usual("head_sinks", head_sinks, false);
  visit("head_norm", head_norm);
  visit("block_norms", block_norms);
  visit.unless_usual("layer_norm", layer_norm, false);
  visit.unless_usual("norms_less_one", norms_less_one, false);
  visit("activation", activation);
  visit.unless_usual("activation_limit", activation_limit, 0.0f);
  visit.unless_usual("plain_mlp", plain_mlp, false);
  visit.unless_usual("mlp_bias", mlp_bias, false);
  visit.unless_usual("learned_positions", learned_positions, false);
  visit.unless_usual("experts", experts, {});
  visit.unless_usual("dense_layers", dense_layers, {});
  visit("scales", scales);
  visit("soft_caps", soft_caps);
  visit("bos_token", bos_token);
  visit("eos_tokens", eos_tokens);
  visit("origin", origin);
  visit("quantization", quantization);
}

struct Writer {
  ordered_json& out;

  void operator()(const char* name, Architecture value) { out[name] = architecture_name(value); }
  void operator()(const char* name, RopeScaling::Kind value) {
    for (const auto& [kind, kind_name] : kScalingKinds) {
      if (kind == value) out[name] = kind_name;
    }
  }
  /// Writes the origin, unless it is the usual one: files of trained models stay as they were before there
  /// was this field.
  void operator()(const char* name, Origin value) {
    if (value != Origin::kTrained) out[name] = origin_name(value);
  }
  /// Writes the norm of queries and keys, unless there is none.
  void operator()(const char* name, HeadNorm value) {
    if (value != HeadNorm::kNone) out[name] = head_norm_name(value);
  }
  /// Writes the place of the norms, unless it is the usual one.
  void operator()(const char* name, BlockNorms value) {
    if (value != BlockNorms::kBefore) out[name] = block_norms_name(value);
  }
  /// Writes the activation, unless it is the usual one.
  void operator()(const char* name, Activation value) {
    if (value != Activation::kSilu) out[name] = activation_name(value);
  }
  /// Writes the soft caps, unless there are none.
  void operator()(const char* name, const SoftCaps& value) {
    if (value == SoftCaps()) return;
    ordered_json& inner = out[name] = ordered_json::object();
    visit_soft_caps(value, Writer{inner});
  }
  void operator()(const char* name, const Experts& value) {
    ordered_json& inner = out[name] = ordered_json::object();
    visit_experts(value, Writer{inner});
  }
  /// Writes the factors, unless all are the usual ones.
  void operator()(const char* name, const Scales& value) {
    if (value == Scales()) return;
    ordered_json& inner = out[name] = ordered_json::object();
    visit_scales(value, Writer{inner});
  }
  /// Writes the settings of LongRoPE, unless all are the usual ones.
  void operator()(const char* name, const LongRope& value) {
    if (value == LongRope()) return;
    ordered_json& inner = out[name] = ordered_json::object();
    visit_long_rope(value, Writer{inner});
  }
  /// Writes a value, unless it is the usual one.
  template <typename T>
  void unless_usual(const char* name, const T& value, const std::type_identity_t<T>& usual) {
    if (value != usual) (*this)(name, value);
  }
  /// Writes the scheme, unless there is none.
  void operator()(const char* name, QuantizationScheme value) {
    if (value != QuantizationScheme::kNone) out[name] = scheme_name(value);
  }
  /// Writes the settings of YaRN, unless all are the usual ones.
  void operator()(const char* name, const YarnScaling& value) {
    if (value == YarnScaling()) return;
    ordered_json& inner = out[name] = ordered_json::object();
    visit_yarn(value, Writer{inner});
  }
  void operator()(const char* name, const RopeScaling& value) {
    ordered_json& inner = out[name] = ordered_json::object();
    visit_scaling(value, Writer{inner});
  }
  void operator()(const char* name, const std::optional<int32_t>& value) {
    out[name] = value ? ordered_json(*value) : ordered_json();
  }
  template <typename T>
  void operator()(const char* name, const T& value) {
    out[name] = value;
  }
};

/// Reads the fields that Writer wrote.
class Reader {
 public:
  Reader(const json& object, const std::string& where) : fields_(object, where), object_(object) {}

  void operator()(const char* name, Architecture& value) {
    const std::string text = required(name, fields_.text(name));
    for (const Architecture candidate : kArchitectures) {
      if (architecture_name(candidate) != text) continue;
      value = candidate;
      return;
    }
    bad_input("{}: the architecture {} is not supported", fields_.where(), printable(text));
  }
  void operator()(const char* name, RopeScaling::Kind& value) {
    const std::string text = required(name, fields_.text(name));
    for (const auto& [kind, kind_name] : kScalingKinds) {
      if (kind_name != text) continue;
      value = kind;
      return;
    }
    bad_input("{}: the RoPE scaling {} is not supported", fields_.where(), printable(text));
  }
  void operator()(const char* name, Origin& value) {
    choose(name, value, kOrigins, origin_name, "the origin {}");
  }
  void operator()(const char* name, HeadNorm& value) {
    choose(name, value, kHeadNorms, head_norm_name, "the norm {} of queries and keys");
  }
  void operator()(const char* name, QuantizationScheme& value) {
    if (!fields_.has(name)) return;
    const std::string text = required(name, fields_.text(name));
    const std::optional<QuantizationScheme> scheme = parse_scheme(text);
    if (!scheme) bad_input("{}: the quantization {} is not known", fields_.where(), printable(text));
    value = *scheme;
  }
  void operator()(const char* name, RopeScaling& value) {
    Reader inner(*required(name, fields_.find(name)), fields_.where());
    visit_scaling(value, inner);
    inner.refuse_others();
  }
  void operator()(const char* name, BlockNorms& value) {
    choose(name, value, kBlockNorms, block_norms_name, "the place {} of norms");
  }
  void operator()(const char* name, Activation& value) {
    choose(name, value, kActivations, activation_name, "the activation {}");
  }
  void operator()(const char* name, SoftCaps& value) {
    read_object(name, [&](Reader& inner) { visit_soft_caps(value, inner); });
  }
  void operator()(const char* name, Experts& value) {
    read_object(name, [&](Reader& inner) { visit_experts(value, inner); });
  }
  void operator()(const char* name, Scales& value) {
    read_object(name, [&](Reader& inner) { visit_scales(value, inner); });
  }
  void operator()(const char* name, YarnScaling& value) {
    read_object(name, [&](Reader& inner) { visit_yarn(value, inner); });
  }
  void operator()(const char* name, int32_t& value) { value = required(name, fields_.integer(name)); }
  void operator()(const char* name, float& value) { value = required(name, fields_.number(name)); }
  void operator()(const char* name, bool& value) { value = required(name, fields_.boolean(name)); }
  void operator()(const char* name, std::optional<int32_t>& value) {
    if (!fields_.has(name)) missing(name);
    value = fields_.integer(name);
    ++seen_;
  }
  void operator()(const char* name, LongRope& value) {
    read_object(name, [&](Reader& inner) { visit_long_rope(value, inner); });
  }
  template <typename T>
  void unless_usual(const char* name, T& value, const std::type_identity_t<T>&) {
    if (fields_.has(name)) (*this)(name, value);
  }
  void operator()(const char* name, std::vector<int32_t>& value) {
    for (const json& element : array(name)) {
      const std::optional<int32_t> number = as_int32(element);
      if (!number) bad_input("{}: {} should hold integers of at most 32 bits", fields_.where(), name);
      value.push_back(*number);
    }
  }
  void operator()(const char* name, std::vector<float>& value) {
    for (const json& element : array(name)) {
      const double number = element.is_number() ? element.get<double>() : std::nan("");
      if (!(std::abs(number) <= static_cast<double>(std::numeric_limits<float>::max()))) {
        bad_input("{}: {} should hold finite numbers", fields_.where(), name);
      }
      value.push_back(static_cast<float>(number));
    }
  }

  /// A field that this program does not know may change what the model is.
  void refuse_others() const {
    if (object_.size() != seen_) {
      bad_input(
          "{}: the model's description has fields that this version does not know; it was made by a "
          "newer one",
          fields_.where());
    }
  }

 private:
  /// Reads one of some values by its name, if the field is there. `what` puts the name into the messages.
  template <typename T, typename Candidates, typename Name>
  void choose(const char* name, T& value, const Candidates& candidates, Name&& name_of, const char* what) {
    if (!fields_.has(name)) return;
    const std::string text = required(name, fields_.text(name));
    for (const T candidate : candidates) {
      if (name_of(candidate) != text) continue;
      value = candidate;
      return;
    }
    bad_input("{}: {} is not known", fields_.where(), fmt::format(fmt::runtime(what), printable(text)));
  }
  /// Reads an object and nothing but its fields, if it is there.
  template <typename Visit>
  void read_object(const char* name, Visit&& visit) {
    if (!fields_.has(name)) return;
    Reader inner(*required(name, fields_.find(name)), fields_.where());
    visit(inner);
    inner.refuse_others();
  }
  template <typename T>
  T required(const char* name, const std::optional<T>& value) {
    if (!value) missing(name);
    ++seen_;
    return *value;
  }
  const json* required(const char* name, const json* value) {
    if (value == nullptr) missing(name);
    ++seen_;
    return value;
  }
  const json& array(const char* name) {
    const json& value = *required(name, fields_.find(name));
    if (!value.is_array()) bad_input("{}: {} should be a list", fields_.where(), name);
    return value;
  }
  [[noreturn]] void missing(const char* name) const { bad_input("{}: {} is missing", fields_.where(), name); }

  JsonFields fields_;
  const json& object_;
  size_t seen_ = 0;
};

}  // namespace

ordered_json config_json(const ModelConfig& config) {
  ordered_json object = ordered_json::object();
  visit_config(config, Writer{object});
  return object;
}

ModelConfig parse_config(const json& object, const std::string& where) {
  ModelConfig config;
  Reader reader(object, where);
  visit_config(config, reader);
  reader.refuse_others();
  validate(config, where);
  return config;
}

}  // namespace verbatim
