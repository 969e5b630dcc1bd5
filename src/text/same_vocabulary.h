#pragma once

#include "text/tokenizer.h"

namespace verbatim {

/// Whether a token id means the same in both vocabularies: ordinary tokens add the same bytes to a text,
/// control tokens have the same name. One of them may go on where the other ends, with padding alone: tokens
/// that say nothing or that no text is encoded to. How text is cut into tokens may differ. Takes some
/// milliseconds for 100,000 tokens.
bool same_vocabulary(const Tokenizer& a, const Tokenizer& b);

/// The control token of `to` that stands for one of `from`: that which ends or begins a sequence, or one of
/// the same name. Nothing if there is none.
std::optional<Token> same_control(const Tokenizer& from, Token token, const Tokenizer& to);

}  // namespace verbatim
