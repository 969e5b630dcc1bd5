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

/// The sensitivities of a model's weights (SqueezeLLM; thesis §3.3): a .safetensors file of F32, F16 or BF16
/// tensors with the names and shapes of the model's matrices. They hold squared gradients of the loss
/// averaged over some text, the diagonal of the Fisher information (eq. 3.5). Rows are in the order of
/// Hugging Face models, even if the model is a GGUF file. Only the proportions within a matrix matter, so a
/// matrix may be scaled, which F16 needs to keep small numbers.
struct SensitivityFile {
  std::filesystem::path path;
  std::map<std::string, TensorView> tensors;
  /// The texts beside the tensors: in files of `verbatim-train sensitivities` what they are made of
  /// (model/sensitivity_origin.h).
  std::map<std::string, std::string> metadata;
  std::shared_ptr<const MemoryMap> file;  ///< keeps the tensors' bytes alive

  bool has(const std::string& name) const { return tensors.contains(name); }
  /// The sensitivities of the model's tensor with this name and shape. Checks all of them, so that rows can
  /// be read later where no exception is allowed; tensors that are not asked for are not checked. Throws
  /// Error(kBadInput) if they are missing, have another shape, or if one is negative, infinite or NaN.
  const TensorView& tensor(const std::string& name, std::span<const int64_t> shape) const;
};

/// Opens a file of sensitivities. Throws Error(kBadInput), naming the file, if it is malformed or
/// if every number in it is 0.
SensitivityFile open_sensitivities(const std::filesystem::path& path);

}  // namespace verbatim
