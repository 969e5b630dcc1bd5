#pragma once

#include <vector>

#include "prepare/converted_tensors.h"

namespace verbatim {

/// The tensors of a GGUF file that hold the experts of a folder's model: a stack of all experts' for each
/// kind of matrix or bias of a layer. Throws Error(kBadInput), naming a tensor, where experts are of
/// different types.
std::vector<ConvertedTensor> gguf_experts(const Checkpoint& checkpoint);

/// Whether folders of a family have a tensor for all experts of a layer together, and not one for each.
bool folder_stacks_experts(const ModelConfig& config);

/// The tensors of a folder that hold the experts of a GGUF file's gpt-oss: codes, scales and biases. Biases
/// get the type `main` if it holds them exactly. Throws Error(kBadInput), naming a tensor, where experts are
/// not in MXFP4.
std::vector<ConvertedTensor> folder_experts(const Checkpoint& checkpoint, DType main);

}  // namespace verbatim
