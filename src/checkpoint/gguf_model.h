#pragma once

#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf.h"

namespace verbatim {

/// The model in a GGUF file, its tensors under their Hugging Face names. Throws Error(kBadInput), naming
/// `where`, for what the file lacks and for every feature that the engine does not have.
Checkpoint gguf_checkpoint(const GgufFile& gguf, const std::filesystem::path& path);

}  // namespace verbatim
