#pragma once

#include <string>
#include <string_view>

#include "text/bpe_merge.h"
#include "text/vocabulary.h"

namespace verbatim {

/// Adds the merge of two texts of the vocabulary. Throws Error(kBadInput), naming `where`, unless both texts
/// and the two joined are tokens.
void add_merge(std::string_view left, std::string_view right, int32_t rank, const std::string& where,
               const Vocabulary& vocabulary, MergeTable& merges);

/// Adds the merge of the two texts in `pair`, which has one space between them.
void add_merge(std::string_view pair, int32_t rank, const std::string& where, const Vocabulary& vocabulary,
               MergeTable& merges);

/// Makes the merges of a SentencePiece vocabulary, which has scores in place of merges: two tokens merge if
/// the two joined are a token, and tokens of the highest score come first.
MergeTable merges_from_scores(const Vocabulary& vocabulary, const std::vector<float>& scores,
                              const std::string& where);

}  // namespace verbatim
