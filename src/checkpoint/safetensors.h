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
/// Throws Error(kBadInput) naming the file and what is wrong in it.
SafetensorsModel open_safetensors(const std::filesystem::path& folder);

/// Whether the folder has either of these files.
bool has_safetensors(const std::filesystem::path& folder);

/// The tensors of one file over bytes that the caller keeps alive; `where` names them in errors. Buffers that
/// old tools saved beside the weights, and that say nothing new, are left out.
std::map<std::string, TensorView> parse_safetensors(std::span<const std::byte> bytes,
                                                    const std::string& where);

}  // namespace verbatim
