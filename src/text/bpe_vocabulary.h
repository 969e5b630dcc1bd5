#pragma once

#include <string>
#include <string_view>

#include "text/bpe_merge.h"
#include "text/vocabulary.h"

namespace verbatim {

/// Adds the merge of two texts of the vocabulary. Where texts within words are marked by `inner_prefix`, the
/// joined text leaves out that of the second one. Throws Error(kBadInput), naming `where`, unless both texts
/// and the two joined are tokens, and the second is so marked.
void add_merge(std::string_view left, std::string_view right, int32_t rank, const std::string& where,
               const Vocabulary& vocabulary, MergeTable& merges, std::string_view inner_prefix = {});

/// Adds the merge of the two texts in `pair`, which has one space between them.
void add_merge(std::string_view pair, int32_t rank, const std::string& where, const Vocabulary& vocabulary,
               MergeTable& merges, std::string_view inner_prefix = {});

/// Makes the merges of a SentencePiece vocabulary, which has scores in place of merges: two tokens merge if
/// the two joined are a token, and tokens of the highest score come first.
MergeTable merges_from_scores(const Vocabulary& vocabulary, const std::vector<float>& scores,
                              const std::string& where);

}  // namespace verbatim
