#include "text/same_vocabulary.h"

#include <algorithm>

#include "base/utf8.h"

namespace verbatim {

namespace {

bool same_token(const Tokenizer& a, const Tokenizer& b, Token token) {
  const bool control = a.is_control(token);
  if (control != b.is_control(token)) return false;
  if (control) return a.vocabulary_text(token) == b.vocabulary_text(token);
  return a.piece_bytes(token, false) == b.piece_bytes(token, false);
}

/// Converters fill a vocabulary up to the model's rows with made-up tokens ("[PAD32001]"). They have bytes,
/// but no text is encoded to them.
bool is_padding(const Tokenizer& tokenizer, Token token) {
  if (tokenizer.is_control(token)) return true;
  const std::string bytes = tokenizer.piece_bytes(token, false);
  if (bytes.empty()) return true;
  if (find_invalid_utf8(bytes) != std::string::npos) return false;
  for (const std::string& text : {bytes, bytes.substr(bytes[0] == ' ' ? 1 : 0)}) {
    const std::vector<Token> tokens = tokenizer.encode(text, {.add_bos = false, .parse_special = false});
    if (std::find(tokens.begin(), tokens.end(), token) != tokens.end()) return false;
  }
  return true;
}

}  // namespace

bool same_vocabulary(const Tokenizer& a, const Tokenizer& b) {
  if (&a == &b) return true;
  const Tokenizer& longer = a.vocab_size() > b.vocab_size() ? a : b;
  const Token common = std::min(a.vocab_size(), b.vocab_size());
  // Vocabularies that differ mostly do so at once.
  for (Token token = 0; token < common; ++token) {
    if (!same_token(a, b, token)) return false;
  }
  for (Token token = common; token < longer.vocab_size(); ++token) {
    if (!is_padding(longer, token)) return false;
  }
  return true;
}

std::optional<Token> same_control(const Tokenizer& from, Token token, const Tokenizer& to) {
  // The end first: some vocabularies have one token for both.
  if (token == from.eos() && to.eos()) return to.eos();
  if (token == from.bos() && to.bos()) return to.bos();
  const std::optional<Token> found = to.find(from.vocabulary_text(token));
  return found && to.is_control(*found) ? found : std::nullopt;
}

}  // namespace verbatim
