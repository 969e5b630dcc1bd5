#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "checkpoint/model_config.h"
#include "checkpoint/quantization_config.h"

namespace verbatim {

/// The field of config.json that marks an enlarged model: an object with `from`, the smaller model, `width`
/// and `depth`. Other programs ignore it.
inline constexpr const char* kInflatedKey = "verbatim_inflated";
/// The field of config.json that marks, if true, a model of random weights. Other programs ignore it.
inline constexpr const char* kRandomKey = "verbatim_random";

/// A family of decoders, as config.json names it.
struct HfFamily {
  Architecture architecture;
  std::string_view type;        ///< `model_type`
  std::string_view class_name;  ///< the first of `architectures`
};

/// The names of a family.
const HfFamily& hf_family(Architecture architecture);

/// Reads config.json and, if there is one, generation_config.json of a folder in Hugging Face layout. Throws
/// Error(kBadInput) if one is malformed or asks for a feature that the engine does not have, so that a model
/// which opens is computed as its makers meant it.
ModelConfig read_hf_config(const std::filesystem::path& folder);

/// Reads a config from the contents of these files. `where` is the name of the folder in errors.
ModelConfig parse_hf_config(std::string_view config_json,
                            std::optional<std::string_view> generation_config_json, const std::string& where);

/// Reads how the weights of a folder in Hugging Face layout are quantized; nothing if its config.json does
/// not say that they are, or for a gpt-oss, which is made in MXFP4.
std::optional<QuantizationConfig> read_quantization(const std::filesystem::path& folder);

/// Finds the vocabulary in a folder: tokenizer.model, else tokenizer.json, else vocab.json together with
/// merges.txt.
TokenizerSource find_tokenizer(const std::filesystem::path& folder);

}  // namespace verbatim
