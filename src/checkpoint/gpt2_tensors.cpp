#include "checkpoint/gpt2_tensors.h"

#include <string_view>

#include "base/error.h"
#include "base/printable.h"

namespace verbatim {

namespace {

/// The name of tensor_names.h for a name in a file.
std::string common_name(const std::string& name, Architecture architecture) {
  constexpr std::string_view kGpt2Prefix = "transformer.";
  if (architecture == Architecture::kGpt2) {
    return name.starts_with(kGpt2Prefix) ? name.substr(kGpt2Prefix.size()) : name;
  }
  return name.starts_with("decoder.") ? "model." + name : name;
}

}  // namespace

bool has_rows_of_inputs(const std::string& name, const TensorView& tensor, const ModelConfig& config) {
  if (config.architecture != Architecture::kGpt2 || !name.starts_with("h.") || tensor.shape.size() != 2) {
    return false;
  }
  for (const std::string_view end : {".c_attn.weight", ".c_fc.weight", ".c_proj.weight"}) {
    if (name.ends_with(end)) return true;
  }
  return false;
}

void name_tensors(Checkpoint& checkpoint) {
  const Architecture architecture = checkpoint.config.architecture;
  std::map<std::string, TensorView> tensors;
  for (auto& [stored, tensor] : checkpoint.tensors) {
    const std::string name = common_name(stored, architecture);
    if (has_rows_of_inputs(name, tensor, checkpoint.config)) {
      std::swap(tensor.shape[0], tensor.shape[1]);
      tensor.transposed = true;
    }
    if (tensors.emplace(name, std::move(tensor)).second) continue;
    bad_input("{}: tensor {} is there under two names", checkpoint.path.string(), printable(name));
  }
  checkpoint.tensors = std::move(tensors);
}

}  // namespace verbatim
