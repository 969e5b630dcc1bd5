#pragma once

#include "checkpoint/checkpoint.h"

namespace verbatim {

/// Brings the tensors of a GPT-2 or an OPT in Hugging Face layout to the names of tensor_names.h, with or
/// without the prefix that the base model has in a file. Matrices that a GPT-2 stores with a row for each
/// input are marked as that. Throws Error(kBadInput) if a tensor is there under two names.
void name_tensors(Checkpoint& checkpoint);

}  // namespace verbatim
