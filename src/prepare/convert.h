#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf.h"

namespace verbatim {

struct ConvertModelOptions {
  /// The type that tensors become whose type the other layout does not have, kF32 or kBF16; without it such a
  /// tensor is refused.
  std::optional<DType> widen = {};
  std::function<void(double)> progress = {};
  std::function<bool()> cancelled = {};
};

/// A model that was converted.
struct ConvertedModel {
  int64_t bytes = 0;    ///< of its tensors
  int64_t widened = 0;  ///< tensors that became another type
  int64_t rounded = 0;  ///< weights of these that the other type does not hold exactly
  std::vector<std::string> warnings;
};

/// Writes a folder's model as a GGUF file. Returns nothing if the work was cancelled. Throws Error(kBadInput)
/// for what the file cannot say, naming it.
std::optional<ConvertedModel> convert_to_gguf(const Checkpoint& checkpoint,
                                              const std::filesystem::path& target,
                                              const ConvertModelOptions& options);

/// Writes the model of a GGUF file into a folder in Hugging Face layout, as convert_to_gguf() does.
std::optional<ConvertedModel> convert_to_folder(const Checkpoint& checkpoint, const GgufFile& gguf,
                                                const std::filesystem::path& target,
                                                const ConvertModelOptions& options);

}  // namespace verbatim
