#pragma once

#include <string>
#include <string_view>

#include "text/bpe_merge.h"
#include "text/vocabulary.h"

namespace verbatim {

/// Adds the merge of two texts of the vocabulary. Throws Error(kBadInput), naming `where`, unless both and
/// what they become together are tokens.
void add_merge(std::string_view left, std::string_view right, int32_t rank, const std::string& where,
               const Vocabulary& vocabulary, MergeTable& merges);

/// The same for two texts with one space between them.
void add_merge(std::string_view pair, int32_t rank, const std::string& where, const Vocabulary& vocabulary,
               MergeTable& merges);

/// Makes the merges of a SentencePiece vocabulary, which has scores instead: two tokens merge when together
/// they are a token, and those of the highest score first.
MergeTable merges_from_scores(const Vocabulary& vocabulary, const std::vector<float>& scores,
                              const std::string& where);

}  // namespace verbatim
