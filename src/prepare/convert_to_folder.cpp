#include <optional>

#include "base/error.h"
#include "base/new_folder.h"
#include "checkpoint/gguf_experts.h"
#include "checkpoint/gpt2_tensors.h"
#include "checkpoint/hf_config.h"
#include "prepare/convert.h"
#include "prepare/converted_experts.h"
#include "prepare/converted_tensors.h"
#include "prepare/converted_vocabulary.h"
#include "prepare/folder_config.h"

namespace verbatim {

namespace {

/// Whether a tensor goes to a folder's tensor of all experts of a layer, which keeps its type.
bool is_stacked(const std::string& name, const ModelConfig& config) {
  return folder_stacks_experts(config) && expert_of(name, config).has_value();
}

/// The type that a tensor gets in a folder, which has no blocks.
DType folder_type(const TensorView& view, const ConvertModelOptions& options) {
  return view.dtype > DType::kBF16 ? *options.widen : view.dtype;
}

/// The type that matrices have, or become: one for all, or F32.
DType main_type(const Checkpoint& checkpoint, const ConvertModelOptions& options) {
  std::optional<DType> common;
  for (const auto& [name, view] : checkpoint.tensors) {
    if (is_stacked(name, checkpoint.config)) continue;
    require_folder_type(name, view, checkpoint, options);
    if (is_small(name, view, checkpoint)) continue;
    const DType type = folder_type(view, options);
    if (common && *common != type) return DType::kF32;
    common = type;
  }
  return common.value_or(DType::kF32);
}

/// The name of a tensor in a file, where the base of a GPT-2 has a prefix.
std::string stored_name(const std::string& name, const ModelConfig& config) {
  const bool base = config.architecture == Architecture::kGpt2 && name != "lm_head.weight";
  return base ? "transformer." + name : name;
}

std::vector<ConvertedTensor> folder_tensors(const Checkpoint& checkpoint, DType main,
                                            const ConvertModelOptions& options) {
  const ModelConfig& config = checkpoint.config;
  const Architecture architecture = config.architecture;
  const bool gemma = architecture == Architecture::kGemma2 || architecture == Architecture::kGemma3;
  std::vector<ConvertedTensor> tensors;
  for (const auto& [name, view] : checkpoint.tensors) {
    if (is_stacked(name, config)) continue;
    ConvertedTensor tensor{.entry = {.name = stored_name(name, config),
                                     .dtype = folder_type(view, options),
                                     .shape = view.shape},
                           .sources = {view},
                           .source_name = name,
                           .small = is_small(name, view, checkpoint),
                           .turned = has_rows_of_inputs(name, view, config)};
    if (tensor.turned) std::swap(tensor.entry.shape[0], tensor.entry.shape[1]);
    set_layout(tensor, checkpoint, hugging_face_interleaves(architecture), gemma);
    // GGUF files have small tensors in F32 whatever they were in.
    if (tensor.small && main != DType::kF32 && fits(tensor, main)) tensor.entry.dtype = main;
    tensors.push_back(std::move(tensor));
  }
  if (!folder_stacks_experts(config)) return tensors;
  for (ConvertedTensor& stack : folder_experts(checkpoint, main)) tensors.push_back(std::move(stack));
  return tensors;
}

}  // namespace

std::optional<ConvertedModel> convert_to_folder(const Checkpoint& checkpoint, const GgufFile& gguf,
                                                const std::filesystem::path& target,
                                                const ConvertModelOptions& options) {
  require_convertible(checkpoint);
  const std::string where = checkpoint.path.string();
  const ModelConfig& config = checkpoint.config;
  // A llama with a window is a Mistral.
  const Architecture architecture = config.architecture == Architecture::kLlama && config.sliding_window > 0
                                        ? Architecture::kMistral
                                        : config.architecture;
  const DType main = main_type(checkpoint, options);
  const std::vector<ConvertedTensor> tensors = folder_tensors(checkpoint, main, options);
  const char* const type = main == DType::kBF16 ? "bfloat16" : main == DType::kF16 ? "float16" : "float32";
  const std::string text = folder_config(config, architecture, type);
  require_same_config(checkpoint, parse_hf_config(text, std::nullopt, target.string()),
                      "a config.json of this family");

  NewFolder folder(target);
  folder.write("config.json", text);
  ConvertedModel result;
  const bool vocabulary = gguf_string(gguf, "tokenizer.ggml.model").has_value();
  if (vocabulary) {
    for (const auto& [name, contents] : folder_vocabulary(gguf, where)) {
      folder.write(name.c_str(), contents);
    }
    require_same_tokens(*load_tokenizer(checkpoint.tokenizer), *load_tokenizer(find_tokenizer(folder.path())),
                        {}, where);
  }
  std::vector<TensorEntry> entries;
  for (const ConvertedTensor& tensor : tensors) entries.push_back(tensor.entry);
  SafetensorsWriter writer(folder.path() / "model.safetensors", entries);
  const auto write = [&writer](std::span<const std::byte> bytes) { writer.write(bytes); };
  if (!write_converted(checkpoint, tensors, write, options, result)) return std::nullopt;
  writer.finish();
  open_checkpoint(folder.path());  // what does not open is not handed out
  folder.keep();
  return result;
}

}  // namespace verbatim
