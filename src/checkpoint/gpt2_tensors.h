#pragma once

#include <string>

#include "checkpoint/checkpoint.h"

namespace verbatim {

/// Brings the tensors of a GPT-2 or an OPT in Hugging Face layout to the names of tensor_names.h, with or
/// without the prefix that the base model has in a file. Matrices that a GPT-2 stores with a row for each
/// input are marked as that. Throws Error(kBadInput) if a tensor is there under two names.
void name_tensors(Checkpoint& checkpoint);

/// Whether a tensor, under its name of tensor_names.h, is a matrix that a GPT-2 in Hugging Face layout stores
/// with a row for each input. It holds numbers alone: of another type, read_row() could not take the columns
/// apart.
bool has_rows_of_inputs(const std::string& name, const TensorView& tensor, const ModelConfig& config);

}  // namespace verbatim
