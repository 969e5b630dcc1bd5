#include "checkpoint/hf_rope.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "checkpoint/rope_scaling.h"

namespace verbatim {

using nlohmann::json;

namespace {

/// The context before scaling: that of the config, or else that of the parameters of the rotation; nothing if
/// neither states it.
std::optional<int32_t> original_context(const JsonFields& fields, const JsonFields& parameters) {
  constexpr const char* kOriginal = "original_max_position_embeddings";
  const std::optional<int32_t> original = fields.integer(kOriginal);
  return original ? original : parameters.integer(kOriginal);
}

/// Reads the settings of YaRN as Transformers does: one that is absent, null or 0 is derived or has its usual
/// value.
RopeScaling parse_yarn(const JsonFields& fields, int32_t context, std::optional<int32_t> original) {
  constexpr YarnScaling kUsual;
  const auto given = [&fields](const char* key, float usual) {
    const float value = fields.number(key).value_or(0.0f);
    return value != 0.0f ? value : usual;
  };
  RopeScaling scaling;
  scaling.kind = RopeScaling::Kind::kYarn;
  scaling.original_context = original.value_or(context);
  std::optional<float> factor = fields.number("factor");
  if (!factor && original && *original > 0) {
    factor = static_cast<float>(static_cast<double>(context) / *original);
  }
  scaling.factor = factor ? *factor : fields.required_number("factor");
  scaling.yarn = {
      .attention_factor = fields.number("attention_factor")
                              .value_or(yarn_attention_factor(scaling.factor, fields.number("mscale"),
                                                              fields.number("mscale_all_dim"))),
      .beta_fast = given("beta_fast", kUsual.beta_fast),
      .beta_slow = given("beta_slow", kUsual.beta_slow),
      .truncate = fields.boolean("truncate").value_or(kUsual.truncate)};
  return scaling;
}

/// Reads the settings of LongRoPE as Transformers does.
RopeScaling parse_long_rope(const JsonFields& fields, int32_t context, std::optional<int32_t> original) {
  for (const char* key : {"short_mscale", "long_mscale"}) {
    if (fields.has(key)) bad_input("{}: rope_scaling with {} is not supported", fields.where(), key);
  }
  const auto factors = [&fields](const char* key) {
    const json* const list = fields.find(key);
    if (list == nullptr || !list->is_array()) {
      bad_input("{}: {} should be a list of numbers", fields.where(), key);
    }
    std::vector<float> numbers;
    for (const json& value : *list) {
      const double wide = value.is_number() ? value.get<double>() : std::numeric_limits<double>::infinity();
      // Converting anything beyond a float's range would be undefined.
      if (!(std::abs(wide) <= static_cast<double>(std::numeric_limits<float>::max()))) {
        bad_input("{}: {} should be a list of numbers", fields.where(), key);
      }
      numbers.push_back(static_cast<float>(wide));
    }
    return numbers;
  };
  constexpr int32_t kUsualOriginal = 4096;  // what Transformers assumes
  RopeScaling scaling;
  scaling.kind = RopeScaling::Kind::kLongRope;
  scaling.original_context = original.value_or(kUsualOriginal);
  const double factor = static_cast<double>(context) / std::max(scaling.original_context, 1);
  scaling.factor = static_cast<float>(factor);
  scaling.long_rope = {
      .short_factors = factors("short_factor"),
      .long_factors = factors("long_factor"),
      .attention_factor = fields.number("attention_factor")
                              .value_or(long_rope_attention_factor(factor, scaling.original_context))};
  return scaling;
}

/// Reads the scaling of positions. `context` is the config's max_position_embeddings, `original` the context
/// before scaling that the config states, if any.
RopeScaling parse_rope_scaling(const JsonFields& fields, Architecture architecture, int32_t context,
                               std::optional<int32_t> original) {
  RopeScaling scaling;
  std::optional<std::string> kind = fields.text("rope_type");
  if (!kind) kind = fields.text("type");
  if (!kind && fields.find("factor") != nullptr) {
    bad_input("{}: rope_scaling has a factor but no rope_type", fields.where());
  }
  if (!kind || *kind == "default") return scaling;
  if (architecture == Architecture::kPhi3) {
    // Older files call it "su" or "yarn".
    if (*kind == "longrope" || *kind == "su" || *kind == "yarn") {
      return parse_long_rope(fields, context, original);
    }
    bad_input("{}: rope_scaling of type {} is not supported for phi3; default and longrope are",
              fields.where(), printable(*kind));
  }
  if (*kind == "linear") {
    scaling.kind = RopeScaling::Kind::kLinear;
    scaling.factor = fields.required_number("factor");
    return scaling;
  }
  if (*kind == "llama3") {
    scaling.kind = RopeScaling::Kind::kLlama3;
    scaling.factor = fields.required_number("factor");
    scaling.low_frequency_factor = fields.required_number("low_freq_factor");
    scaling.high_frequency_factor = fields.required_number("high_freq_factor");
    scaling.original_context = fields.required_integer("original_max_position_embeddings");
    return scaling;
  }
  if (*kind == "dynamic") {
    scaling.kind = RopeScaling::Kind::kDynamic;
    scaling.factor = fields.required_number("factor");
    scaling.original_context = context;  // in Transformers too, whatever else the file states
    return scaling;
  }
  if (*kind == "yarn") return parse_yarn(fields, context, original);
  bad_input("{}: rope_scaling of type {} is not supported; default, linear, dynamic, yarn and llama3 are",
            fields.where(), printable(*kind));
}

/// Whether the longest sequence follows from the scaling. Files with Llama 3's state the scaled one.
bool extends_context(RopeScaling::Kind kind) {
  using Kind = RopeScaling::Kind;
  return kind == Kind::kLinear || kind == Kind::kDynamic || kind == Kind::kYarn;
}

/// Refuses parameters of a rotation of a part of each head.
void require_whole_rotation(const JsonFields& fields) {
  if (fields.number("partial_rotary_factor").value_or(1.0f) == 1.0f) return;
  bad_input("{}: a partial_rotary_factor other than 1 is not supported", fields.where());
}

/// Newer files of a Gemma 3 have parameters for each kind of layers. Returns whether these are such.
bool parse_rope_by_kind(const json& value, const JsonFields& fields, ModelConfig& config) {
  constexpr const char* kFull = "full_attention";
  constexpr const char* kSliding = "sliding_attention";
  if (!value.is_object() || (!value.contains(kFull) && !value.contains(kSliding))) return false;
  if (config.architecture != Architecture::kGemma3) {
    bad_input("{}: RoPE parameters by kind of layer are not supported for this model_type", fields.where());
  }
  const JsonFields by_kind(value, fields.where());
  if (const json* const full = by_kind.find(kFull)) {
    const JsonFields parameters(*full, fields.where(), kFull);
    require_whole_rotation(parameters);
    config.rope_scaling = parse_rope_scaling(parameters, config.architecture, config.context,
                                             original_context(fields, parameters));
    config.rope_theta = parameters.number("rope_theta").value_or(config.rope_theta);
  }
  if (const json* const sliding = by_kind.find(kSliding)) {
    const JsonFields parameters(*sliding, fields.where(), kSliding);
    require_whole_rotation(parameters);
    if (parse_rope_scaling(parameters, config.architecture, config.context, std::nullopt).kind !=
        RopeScaling::Kind::kNone) {
      bad_input("{}: RoPE scaling of layers with a window is not supported", fields.where());
    }
    config.window_rope_theta = parameters.number("rope_theta").value_or(config.window_rope_theta);
  }
  return true;
}

}  // namespace

void parse_rope(const JsonFields& fields, ModelConfig& config) {
  const int32_t stated = config.context;
  std::optional<float> rotated = fields.number("partial_rotary_factor");
  const bool glm4 = config.architecture == Architecture::kGlm4;
  if (glm4 && !rotated) rotated = 0.5f;  // as Transformers assumes
  config.rope_theta = fields.number("rope_theta").value_or(config.rope_theta);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const json* value = fields.find(key);
    if (value == nullptr) continue;
    if (parse_rope_by_kind(*value, fields, config)) continue;
    const JsonFields parameters(*value, fields.where(), key);
    const std::optional<int32_t> original = original_context(fields, parameters);
    config.rope_scaling = parse_rope_scaling(parameters, config.architecture, stated, original);
    // A Gemma 3 states the scaled context.
    config.context = extends_context(config.rope_scaling.kind) && config.architecture != Architecture::kGemma3
                         ? scaled_context(stated, original, config.rope_scaling.factor)
                         : stated;
    config.rope_theta = parameters.number("rope_theta").value_or(config.rope_theta);
    if (parameters.has("partial_rotary_factor")) rotated = parameters.number("partial_rotary_factor");
  }
  if (rotated.value_or(1.0f) == 1.0f) return;
  if (config.architecture != Architecture::kPhi3 && !glm4) {
    bad_input("{}: a partial_rotary_factor other than 1 is not supported", fields.where());
  }
  const float elements = static_cast<float>(config.head_dim) * *rotated;
  if (!(elements >= 2.0f && elements < static_cast<float>(config.head_dim))) {
    bad_input("{}: partial_rotary_factor is {}", fields.where(), *rotated);
  }
  config.rotary_dim = static_cast<int32_t>(elements);
}

}  // namespace verbatim
