#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "text/tokenizer.h"

namespace verbatim::test {

/// Writes a copy of a model whose token i is the original's token ids[i]: the vocabulary, the embedding and
/// the output matrix are renumbered, and lack what `ids` lacks. The original is a folder with one safetensors
/// file and a tokenizer.model.
void write_with_vocabulary(const std::filesystem::path& model, const std::vector<int32_t>& ids,
                           const std::filesystem::path& folder);

/// Writes a copy of a model that speaks with the vocabulary of another tokenizer.model, in the folder
/// `tokenizer`. The rows of the pieces that both vocabularies have are the original's; to the others the copy
/// is deaf (their embeddings are zero), and it finds them as unlikely as the token for the unknown.
void write_onto_vocabulary(const std::filesystem::path& model, const std::filesystem::path& tokenizer,
                           const std::filesystem::path& folder);

/// For write_with_vocabulary: the tokens of a model in another order, but for its first three (unknown,
/// beginning, end); of those that are longer than a character only the first `most`, which a BPE vocabulary
/// can do with.
std::vector<int32_t> shuffled_vocabulary(const std::filesystem::path& model, size_t most, uint32_t seed);

/// A tokenizer with the single characters and the thousand most frequent longer pieces of the repository's
/// models, in another order.
std::shared_ptr<const Tokenizer> reduced_tokenizer();

/// The tokenizer of Llama 2, from the public test data.
std::shared_ptr<const Tokenizer> llama2_tokenizer();

/// Copies a tokenizer into the folder of a model that has none.
void copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace verbatim::test
