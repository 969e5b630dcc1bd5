#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/memory_map.h"
#include "checkpoint/checkpoint.h"

namespace verbatim {

/// The tensors of one file or of all shards of a model.
struct SafetensorsModel {
  std::map<std::string, TensorView> tensors;
  std::vector<std::shared_ptr<const MemoryMap>> files;
};

/// Opens the `model.safetensors` of a folder, or the shards that its `model.safetensors.index.json` lists.
/// Throws Error(kBadInput), naming the file, if one is malformed.
SafetensorsModel open_safetensors(const std::filesystem::path& folder);

/// Whether a folder has a `model.safetensors` or a `model.safetensors.index.json`.
bool has_safetensors(const std::filesystem::path& folder);

/// Reads the tensors of one file from its bytes, which the caller keeps alive; `where` names them in errors.
/// Buffers that old tools saved beside the weights, and that the config determines, are left out.
std::map<std::string, TensorView> parse_safetensors(std::span<const std::byte> bytes,
                                                    const std::string& where);

/// Reads the texts that a file holds besides its tensors, by name; what is no text is left out. Throws as
/// parse_safetensors() does for a header that is malformed.
std::map<std::string, std::string> safetensors_metadata(std::span<const std::byte> bytes,
                                                        const std::string& where);

}  // namespace verbatim
