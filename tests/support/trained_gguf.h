#pragma once

#include <filesystem>

#include "checkpoint/checkpoint.h"

namespace verbatim::test {

/// Writes a GGUF file with the weights and the vocabulary of a Llama in Hugging Face layout whose tokenizer
/// is a SentencePiece BPE model. Matrices are stored in `dtype`, norms in F32.
void write_trained_gguf(const std::filesystem::path& model, const std::filesystem::path& file, DType dtype);

/// The draft model of the repository as a GGUF file in F32, written once for each test program.
const std::filesystem::path& draft_gguf();

}  // namespace verbatim::test
