#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "base/memory_map.h"
#include "checkpoint/checkpoint.h"

namespace verbatim {

/// How sensitive a model's loss is to each of its weights (SqueezeLLM; thesis §3.3): a .safetensors file of
/// F32, F16 or BF16 tensors with the names and shapes of the model's matrices, which hold squared gradients
/// averaged over some text, the diagonal of the Fisher information (eq. 3.5). Rows are in the order of
/// Hugging Face models, also where the model itself is a GGUF file. Only proportions matter within a matrix,
/// so they may be scaled, which F16 needs if small ones are not to vanish.
struct SensitivityFile {
  std::filesystem::path path;
  std::map<std::string, TensorView> tensors;
  std::shared_ptr<const MemoryMap> file;  ///< keeps the tensors' bytes alive

  bool has(const std::string& name) const { return tensors.contains(name); }
  /// The sensitivities of the model's tensor of that name, which has that shape. Throws Error(kBadInput) when
  /// they are missing, of another shape, or when one is negative, infinite or NaN. Reads all of them, so that
  /// rows can be read later where nothing may throw. What nobody asks for is not looked at.
  const TensorView& tensor(const std::string& name, std::span<const int64_t> shape) const;
};

/// Throws Error(kBadInput) naming the file and what is wrong in it.
SensitivityFile open_sensitivities(const std::filesystem::path& path);

}  // namespace verbatim
