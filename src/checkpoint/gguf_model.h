#pragma once

#include <string>

#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf.h"

namespace verbatim {

// Tensors of a GGUF file that are read into the config: the divisors of the frequencies of rotated pairs.
inline constexpr const char* kRopeFactors = "rope_freqs.weight";
inline constexpr const char* kShortFactors = "rope_factors_short.weight";
inline constexpr const char* kLongFactors = "rope_factors_long.weight";

/// What the metadata begin with that state Llama 3's scaling as config.json does. Other programs know its
/// divisors alone, which are rounded.
inline constexpr const char* kLlama3Scaling = "verbatim.llama3_scaling.";

/// The metadata that name the tokens with which generation ends: the ends of a text, of a turn and of a
/// message that calls a tool.
inline constexpr const char* kEndTokens[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                             "tokenizer.ggml.eom_token_id"};

/// The model in a GGUF file, its tensors under their Hugging Face names. Throws Error(kBadInput), naming
/// `where`, for what the file lacks and for every feature that the engine does not have.
Checkpoint gguf_checkpoint(const GgufFile& gguf, const std::filesystem::path& path);

/// The Hugging Face name of a tensor of a GGUF file. A name without a counterpart stays recognizable.
std::string hugging_face_name(const std::string& name, const ModelConfig& config);

/// The name of an architecture in GGUF files, which have one for several: a Mistral is a "llama".
std::string gguf_architecture_name(Architecture architecture);

/// Whether neighbours rotate in the query and key matrices of GGUF files of this architecture.
bool gguf_interleaves(Architecture architecture);

}  // namespace verbatim
