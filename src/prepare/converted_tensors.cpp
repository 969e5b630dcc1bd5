#include "prepare/converted_tensors.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/float16.h"
#include "base/memory_map.h"
#include "base/printable.h"
#include "checkpoint/expert_names.h"
#include "checkpoint/gguf_experts.h"
#include "checkpoint/gguf_model.h"
#include "container/config_json.h"

namespace verbatim {

namespace {

using Rows = ConvertedTensor::Rows;

constexpr Architecture kConvertible[] = {
    Architecture::kLlama,   Architecture::kMistral, Architecture::kQwen2, Architecture::kQwen3,
    Architecture::kSmolLm3, Architecture::kGranite, Architecture::kOlmo2, Architecture::kPhi3,
    Architecture::kGemma2,  Architecture::kGemma3,  Architecture::kGlm4,  Architecture::kMixtral,
    Architecture::kQwen3Moe};

bool is_norm(const std::string& name) {
  return name.ends_with("norm.weight");
}

bool is_rotated(const std::string& name) {
  return name.find(".q_proj.") != std::string::npos || name.find(".k_proj.") != std::string::npos;
}

/// The row of the original that a row comes from.
int64_t source_row(const ConvertedTensor& tensor, int64_t row) {
  if (tensor.rows == Rows::kStay) return row;
  const int64_t half = tensor.head_rows / 2;
  const int64_t head = row / tensor.head_rows * tensor.head_rows;
  const int64_t place = row - head;
  if (tensor.rows == Rows::kInterleave) return head + place / 2 + (place % 2 == 0 ? 0 : half);
  return head + (place < half ? 2 * place : 2 * (place - half) + 1);
}

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

void append_value(DType dtype, float value, std::vector<std::byte>& out) {
  const auto append = [&out](auto number) {
    const size_t begin = out.size();
    out.resize(begin + sizeof(number));
    std::memcpy(out.data() + begin, &number, sizeof(number));
  };
  if (dtype == DType::kF32) return append(value);
  if (dtype == DType::kF16) return append(to_float16(value));
  append(to_bfloat16(value));
}

/// Adds 1 to a row, as packing adds it to the weights of such a folder, or takes 1 away. Throws where adding
/// it again would not give the same weights.
void add_exactly(const ConvertedTensor& tensor, std::span<float> row, const Checkpoint& checkpoint) {
  if (tensor.added == 0.0f) return;
  for (float& value : row) {
    const float sum = value + tensor.added;
    if (tensor.added < 0 && sum - tensor.added != value) {
      bad_input("{}: tensor {} would be stored less 1 in a folder, and loses bits by it",
                checkpoint.path.string(), printable(tensor.source_name));
    }
    value = sum;
  }
}

void write_source(const Checkpoint& checkpoint, const ConvertedTensor& tensor, const TensorView& source,
                  const std::function<void(std::span<const std::byte>)>& write, ConvertedModel& result) {
  const DType dtype = tensor.entry.dtype;
  const bool as_stored = dtype == source.dtype && tensor.added == 0.0f;
  if (as_stored && tensor.rows == Rows::kStay) return write(source.data);
  const int64_t rows = source.rows();
  const auto columns = static_cast<size_t>(source.columns());
  // Small tensors are in another type in GGUF, which holds them exactly unless they are in blocks.
  const bool counted = !is_small(tensor.source_name, source, checkpoint) || source.dtype > DType::kBF16;
  if (!as_stored && counted) ++result.widened;
  std::vector<float> values(columns);
  std::vector<std::byte> bytes;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t from = source_row(tensor, row);
    if (as_stored) {
      const size_t size = source.data.size() / static_cast<size_t>(rows);
      write(source.data.subspan(static_cast<size_t>(from) * size, size));
      continue;
    }
    source.read_row(from, values);
    add_exactly(tensor, values, checkpoint);
    bytes.clear();
    for (const float value : values) {
      if (counted && !holds(dtype, value)) ++result.rounded;
      append_value(dtype, value, bytes);
    }
    write(bytes);
  }
}

double source_bytes(const ConvertedTensor& tensor) {
  double bytes = 0;
  for (const TensorView* const source : tensor.sources) bytes += static_cast<double>(source->data.size());
  return bytes;
}

nlohmann::ordered_json comparable(ModelConfig config) {
  // How files store the weights, and what no file of a format says.
  config.rope_interleaved = false;
  config.norms_less_one = false;
  config.origin = Origin::kTrained;
  if (config.architecture == Architecture::kMistral) config.architecture = Architecture::kLlama;
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

bool is_small(const std::string& name, const TensorView& tensor, const Checkpoint& checkpoint) {
  return tensor.shape.size() == 1 || is_router(checkpoint.config, name);
}

void require_convertible(const Checkpoint& checkpoint) {
  const Architecture architecture = checkpoint.config.architecture;
  if (std::ranges::find(kConvertible, architecture) != std::end(kConvertible)) return;
  std::string known;
  for (const Architecture each : kConvertible) known += (known.empty() ? "" : ", ") + architecture_name(each);
  bad_input("{}: a {} model cannot be converted; these can: {}", checkpoint.path.string(),
            architecture_name(architecture), known);
}

std::string gguf_name_of(const std::string& name, const Checkpoint& checkpoint) {
  constexpr const char* kLayerParts[] = {"attn_norm",    "post_attention_norm",
                                         "ffn_norm",     "post_ffw_norm",
                                         "attn_q",       "attn_k",
                                         "attn_v",       "attn_qkv",
                                         "attn_output",  "attn_q_norm",
                                         "attn_k_norm",  "ffn_gate",
                                         "ffn_gate_inp", "ffn_up",
                                         "ffn_down"};
  constexpr const char* kExpertParts[] = {"ffn_gate", "ffn_up", "ffn_down"};
  std::vector<std::string> stems = {"token_embd", "output_norm", "output"};
  constexpr std::string_view kLayers = "model.layers.";
  if (name.starts_with(kLayers)) {
    const std::string number = name.substr(kLayers.size(), name.find('.', kLayers.size()) - kLayers.size());
    for (const char* part : kLayerParts) stems.push_back(fmt::format("blk.{}.{}", number, part));
    if (const std::optional<int64_t> expert = expert_of(name, checkpoint.config)) {
      for (const char* part : kExpertParts) {
        const std::string stem = fmt::format("blk.{}.{}", number, part);
        const std::string single = fmt::format("{}.{}.weight", stem, *expert);
        if (hugging_face_name(single, checkpoint.config) == name) return stem + "_exps.weight";
      }
    }
  }
  for (const std::string& stem : stems) {
    for (const char* end : {".weight", ".bias"}) {
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
    tensor.rows = interleaved ? Rows::kInterleave : Rows::kSeparate;
    tensor.head_rows = config.head_dim;
    if (tensor.sources.front()->shape.size() < 2) {
      bad_input("{}: tensor {}, a bias of a rotated matrix, cannot be converted", checkpoint.path.string(),
                printable(tensor.source_name));
    }
  }
  if (is_norm(tensor.source_name) && config.norms_less_one != norms_less_one) {
    tensor.added = norms_less_one ? -1.0f : 1.0f;
  }
}

bool write_converted(const Checkpoint& checkpoint, std::span<const ConvertedTensor> tensors,
                     const std::function<void(std::span<const std::byte>)>& write,
                     const ConvertModelOptions& options, ConvertedModel& result) {
  double total = 0;
  for (const ConvertedTensor& tensor : tensors) total += source_bytes(tensor);
  double done = 0;
  const auto count = [&result, &write](std::span<const std::byte> bytes) {
    result.bytes += std::ssize(bytes);
    write(bytes);
  };
  for (const ConvertedTensor& tensor : tensors) {
    if (options.cancelled && options.cancelled()) return false;
    if (!tensor.values.empty()) count(std::as_bytes(std::span(tensor.values)));
    for (const TensorView* const source : tensor.sources) {
      write_source(checkpoint, tensor, *source, count, result);
    }
    for (const auto& file : checkpoint.files) file->release();
    done += source_bytes(tensor);
    if (options.progress) options.progress(done / total);
  }
  return !(options.cancelled && options.cancelled());
}

bool fits(const ConvertedTensor& tensor, DType dtype) {
  const TensorView& source = *tensor.sources.front();
  if (source.dtype != DType::kF32) return false;
  std::vector<float> values(static_cast<size_t>(source.columns()));
  for (int64_t row = 0; row < source.rows(); ++row) {
    source.read_row(row, values);
    for (const float value : values) {
      const float sum = value + tensor.added;
      if (!holds(dtype, sum) || sum - tensor.added != value) return false;
    }
  }
  return true;
}

void require_same_config(const Checkpoint& original, const ModelConfig& converted, const char* format) {
  require_same_fields(comparable(original.config), comparable(converted), "",
                      fmt::format("{}: {}", original.path.string(), format));
}

}  // namespace verbatim
