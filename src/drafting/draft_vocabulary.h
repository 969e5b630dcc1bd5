#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_team.h"
#include "formats/linear.h"
#include "text/tokenizer.h"

namespace verbatim {

/// The tokens that a draft with a reduced vocabulary chooses among: `count` of the tokens 0 .. tokens - 1, in
/// ascending order, those that texts need most often first.
///
/// Byte-pair vocabularies number their pieces in the order in which training merged them, the frequent ones
/// first. SentencePiece puts its alphabet behind them all, again the frequent characters first, and most
/// texts consist of these at every other place (spaces, brackets, digits). So the choice is
///   1. the tokenizer's end of text, and the byte tokens of line breaks and tabs,
///   2. the characters behind the longer pieces, up to a quarter of the count,
///   3. all other pieces by number,
/// and only if there is still room control tokens, other byte tokens and what has no text.
/// Where there is no tokenizer (null), the choice is the first tokens.
std::vector<int32_t> draft_vocabulary(const Tokenizer* tokenizer, int32_t tokens, int32_t count);

/// Makes an output matrix for `tokens` alone: column i is that of tokens[i] < head.columns. It packs the
/// store that `reading` reads anew, into memory of its own. Throws Error(kUsage) if `head` has no such store.
LinearWeight draft_head(const LinearWeight& head, Reading reading, std::span<const int32_t> tokens,
                        ThreadTeam& team);

}  // namespace verbatim
