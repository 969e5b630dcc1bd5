#include "prepare/converted_tensors.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/float16.h"
#include "base/printable.h"
#include "checkpoint/expert_names.h"
#include "checkpoint/gguf_experts.h"
#include "checkpoint/gguf_model.h"
#include "checkpoint/tensor_names.h"
#include "container/config_json.h"

namespace verbatim {

namespace {

bool is_norm(const std::string& name) {
  return name.ends_with("norm.weight");
}

bool is_rotated(const std::string& name) {
  return name.find(".q_proj.") != std::string::npos || name.find(".k_proj.") != std::string::npos;
}

nlohmann::ordered_json comparable(ModelConfig config) {
  // How files store the weights, and what no file of a format says.
  config.rope_interleaved = false;
  config.norms_less_one = false;
  config.origin = Origin::kTrained;
  if (config.architecture == Architecture::kMistral) config.architecture = Architecture::kLlama;
  if (config.architecture == Architecture::kGptOss) {
    config.fused_gate_up = false;
    config.intermediate_size = config.experts.intermediate_size;  // no layer is without experts
  }
  std::sort(config.eos_tokens.begin(), config.eos_tokens.end());
  return config_json(config);
}

/// Checks that two objects have the same fields. Throws Error(kBadInput), naming the first one that differs,
/// with the fields that it is in before it.
void require_same_fields(const nlohmann::ordered_json& ours, const nlohmann::ordered_json& theirs,
                         const std::string& within, const std::string& what) {
  for (const nlohmann::ordered_json* side : {&ours, &theirs}) {
    for (const auto& item : side->items()) {
      const std::string& key = item.key();
      const bool nested = ours.contains(key) && theirs.contains(key) && item.value().is_object();
      if (nested) {
        require_same_fields(ours[key], theirs[key], within + key + ".", what);
        continue;
      }
      const auto shown = [&key](const nlohmann::ordered_json& fields) {
        return fields.contains(key) ? printable(fields[key].dump()) : std::string("nothing");
      };
      if (shown(ours) == shown(theirs)) continue;
      bad_input("{} cannot state that {}{} is {}: it would be read as {}", what, within, key,
                shown(ours).substr(0, 120), shown(theirs).substr(0, 120));
    }
  }
}

}  // namespace

bool holds(DType dtype, float value) {
  const auto bits = [](float number) { return std::bit_cast<uint32_t>(number); };
  switch (dtype) {
    case DType::kF32:
      return true;
    case DType::kF16:
      return bits(to_float(to_float16(value))) == bits(value);
    case DType::kBF16:
      return bits(to_float(to_bfloat16(value))) == bits(value);
    default:
      return false;
  }
}

bool is_small(const std::string& name, const TensorView& tensor, const Checkpoint& checkpoint) {
  const ModelConfig& config = checkpoint.config;
  if (tensor.shape.size() == 1 || is_router(config, name)) return true;
  return config.learned_positions && name == fmt::format("{}.weight", tensor_names(config).positions);
}

void require_convertible(const Checkpoint& checkpoint) {
  if (checkpoint.config.architecture != Architecture::kOpt) return;
  bad_input("{}: an opt model cannot be converted: GGUF has no architecture for it",
            checkpoint.path.string());
}

void require_gguf_type(const std::string& name, const TensorView& tensor, const Checkpoint& checkpoint) {
  const bool mxfp4 = tensor.dtype == DType::kMXFP4Apart;  // of the experts of a gpt-oss
  if (tensor.scaled == nullptr && (tensor.dtype <= DType::kBF16 || mxfp4)) return;
  bad_input("{}: tensor {} is in {}, which GGUF does not have; F32, F16 and BF16 can be converted",
            checkpoint.path.string(), printable(name), dtype_name(tensor.dtype));
}

void require_folder_type(const std::string& name, const TensorView& tensor, const Checkpoint& checkpoint,
                         const ConvertModelOptions& options) {
  if (tensor.dtype <= DType::kBF16 || options.widen) return;
  bad_input(
      "{}: tensor {} is in {}, which safetensors do not have; --widen f32 or --widen bf16 converts such "
      "tensors to that type",
      checkpoint.path.string(), printable(name), dtype_name(tensor.dtype));
}

std::string gguf_name_of(const std::string& name, const Checkpoint& checkpoint) {
  constexpr const char* kLayerParts[] = {"attn_norm",   "post_attention_norm",
                                         "ffn_norm",    "post_ffw_norm",
                                         "attn_q",      "attn_k",
                                         "attn_v",      "attn_qkv",
                                         "attn_output", "attn_q_norm",
                                         "attn_k_norm", "attn_sinks",
                                         "ffn_gate",    "ffn_gate_inp",
                                         "ffn_up",      "ffn_down"};
  constexpr const char* kExpertParts[] = {"ffn_gate", "ffn_up", "ffn_down"};
  constexpr const char* kEnds[] = {".weight", ".bias"};
  std::vector<std::string> stems = {"token_embd", "position_embd", "output_norm", "output"};
  const std::string layers(tensor_names(checkpoint.config).layers);
  if (name.starts_with(layers)) {
    const std::string number = name.substr(layers.size(), name.find('.', layers.size()) - layers.size());
    for (const char* part : kLayerParts) stems.push_back(fmt::format("blk.{}.{}", number, part));
    if (const std::optional<int64_t> expert = expert_of(name, checkpoint.config)) {
      for (const char* part : kExpertParts) {
        for (const char* end : kEnds) {
          const std::string stem = fmt::format("blk.{}.{}", number, part);
          const std::string single = fmt::format("{}.{}{}", stem, *expert, end);
          if (hugging_face_name(single, checkpoint.config) == name) return stem + "_exps" + end;
        }
      }
    }
  }
  for (const std::string& stem : stems) {
    for (const char* end : kEnds) {
      if (hugging_face_name(stem + end, checkpoint.config) == name) return stem + end;
    }
  }
  bad_input("{}: tensor {} has no counterpart in a GGUF file of a {}", checkpoint.path.string(),
            printable(name), gguf_architecture_name(checkpoint.config.architecture));
}

void set_layout(ConvertedTensor& tensor, const Checkpoint& checkpoint, bool interleaved,
                bool norms_less_one) {
  const ModelConfig& config = checkpoint.config;
  if (is_rotated(tensor.source_name) && config.rope_interleaved != interleaved) {
    using Rows = ConvertedTensor::Rows;
    tensor.rows = interleaved ? Rows::kInterleave : Rows::kSeparate;
    tensor.head_rows = config.head_dim;
    if (tensor.sources.front().shape.size() < 2) {
      bad_input("{}: tensor {}, a bias of a rotated matrix, cannot be converted", checkpoint.path.string(),
                printable(tensor.source_name));
    }
  }
  if (is_norm(tensor.source_name) && config.norms_less_one != norms_less_one) {
    tensor.added = norms_less_one ? -1.0f : 1.0f;
  }
}

bool fits(const ConvertedTensor& tensor, DType dtype) {
  for (const TensorView& source : tensor.sources) {
    if (source.dtype != DType::kF32) return false;
    std::vector<float> values(static_cast<size_t>(source.columns()));
    for (int64_t row = 0; row < source.rows(); ++row) {
      source.read_row(row, values);
      for (const float value : values) {
        const float sum = value + tensor.added;
        if (!holds(dtype, sum) || sum - tensor.added != value) return false;
      }
    }
  }
  return true;
}

void require_same_config(const Checkpoint& original, const ModelConfig& converted, const char* format) {
  require_same_fields(comparable(original.config), comparable(converted), "",
                      fmt::format("{}: {}", original.path.string(), format));
}

}  // namespace verbatim
