#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "checkpoint/checkpoint.h"

namespace verbatim::test {

/// The type that a GGUF file gives a matrix, by the name that the matrix has in Hugging Face layout and the
/// number of layers of the model.
using TypeOfMatrix = std::function<DType(const std::string& name, int64_t layers)>;

/// The type of a matrix of a Llama in the mix that users of GGUF files call Q4_K_M: Q6_K for the embedding,
/// and for the value and down projections of the first and last eighth of the layers and of every third layer
/// between them; Q4_K for all others.
DType type_in_q4_k_m(const std::string& name, int64_t layers);

/// Writes a GGUF file with the weights and the vocabulary of a Llama in Hugging Face layout whose tokenizer
/// is a SentencePiece BPE model. Matrices are stored in the types that `type_of` gives them, norms in F32.
void write_trained_gguf(const std::filesystem::path& model, const std::filesystem::path& file,
                        const TypeOfMatrix& type_of);

/// Writes the GGUF file with all matrices in `dtype`.
void write_trained_gguf(const std::filesystem::path& model, const std::filesystem::path& file, DType dtype);

/// The draft model of the repository as a GGUF file in F32, written once for each test program.
const std::filesystem::path& draft_gguf();

}  // namespace verbatim::test
