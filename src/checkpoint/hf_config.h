#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "checkpoint/model_config.h"

namespace verbatim {

/// Fields of config.json that other programs ignore. An object: the model was enlarged, and `from` which,
/// with which `width` and to which `depth`. True: the weights are random numbers.
inline constexpr const char* kInflatedKey = "verbatim_inflated";
inline constexpr const char* kRandomKey = "verbatim_random";

/// Reads config.json and, where there is one, generation_config.json of a folder in Hugging Face layout.
/// Throws Error(kBadInput) for anything malformed and for every feature that the engine does not have: a
/// model that opens is computed as its makers meant it.
ModelConfig read_hf_config(const std::filesystem::path& folder);

/// The same from the files' contents; `where` is the folder's name in errors.
ModelConfig parse_hf_config(std::string_view config_json,
                            std::optional<std::string_view> generation_config_json, const std::string& where);

/// The vocabulary in a folder: tokenizer.model, else tokenizer.json, else vocab.json with merges.txt beside
/// it.
TokenizerSource find_tokenizer(const std::filesystem::path& folder);

}  // namespace verbatim
