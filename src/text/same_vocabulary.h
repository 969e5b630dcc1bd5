#pragma once

#include "text/tokenizer.h"

namespace verbatim {

/// Whether every token id means the same in both vocabularies: ordinary tokens add the same bytes to a text,
/// and control tokens have the same name. One vocabulary may be longer if it has only padding there: tokens
/// without bytes, or to which no text is encoded. How text is cut into tokens may differ. Takes some
/// milliseconds for 100,000 tokens.
bool same_vocabulary(const Tokenizer& a, const Tokenizer& b);

/// The control token of `to` that corresponds to the control token `token` of `from`: the one that ends or
/// begins a sequence as that does, or the one of the same name. Nothing if there is none.
std::optional<Token> same_control(const Tokenizer& from, Token token, const Tokenizer& to);

}  // namespace verbatim
