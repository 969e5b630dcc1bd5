#include "text/continuation.h"

namespace verbatim {

namespace {

constexpr Tokenizer::EncodeOptions kPlainText = {.add_bos = false, .parse_special = false};

bool is_white(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

}  // namespace

std::string inner_bytes(const Tokenizer& tokenizer, std::span<const Token> tokens) {
  std::string bytes;
  for (const Token token : tokens) {
    if (!tokenizer.is_control(token)) bytes += tokenizer.piece_bytes(token, false);
  }
  return bytes;
}

bool begins_word(const Tokenizer& tokenizer, std::span<const Token> tokens, size_t i) {
  std::string after = inner_bytes(tokenizer, tokens.subspan(i, 1));
  if (!after.starts_with(' ')) return false;
  if (after.size() == 1 && i + 1 < tokens.size()) after += inner_bytes(tokenizer, tokens.subspan(i + 1, 1));
  if (after.size() == 1 || is_white(after[1])) return false;
  const std::string before = inner_bytes(tokenizer, tokens.subspan(i - 1, 1));
  return !before.empty() && !is_white(before.back());
}

ContinuationEncoder::ContinuationEncoder(const Tokenizer& tokenizer)
    : tokenizer_(&tokenizer),
      adds_space_(inner_bytes(tokenizer, tokenizer.encode("a", kPlainText)).starts_with(' ')) {}

bool ContinuationEncoder::encode(std::string_view text, std::vector<Token>& tokens) const {
  if (text.empty()) return true;
  std::vector<Token> found;
  if (adds_space_) {
    // The space that is put before a text can stand for the text's own.
    if (text[0] == ' ') {
      found = tokenizer_->encode(text.substr(1), kPlainText);
    } else if (encode_after_line_break(text, tokens)) {
      return true;
    }
  }
  // Some put a space before a text only if it has none.
  bool exact = !found.empty() && inner_bytes(*tokenizer_, found) == text;
  if (!exact) {
    found = tokenizer_->encode(text, kPlainText);
    exact = inner_bytes(*tokenizer_, found) == text;
  }
  tokens.insert(tokens.end(), found.begin(), found.end());
  return exact;
}

/// Encodes it as the second line of a text, where no space is put before it; if there are no tokens across
/// the line break, those after it are what was sought.
bool ContinuationEncoder::encode_after_line_break(std::string_view text, std::vector<Token>& tokens) const {
  std::string lines = "\n";
  lines += text;
  const std::vector<Token> found = tokenizer_->encode(lines, kPlainText);
  size_t first = 0;
  for (std::string before; first < found.size() && !before.ends_with('\n'); ++first) {
    before += inner_bytes(*tokenizer_, {&found[first], 1});
  }
  const std::span<const Token> rest = std::span(found).subspan(first);
  if (inner_bytes(*tokenizer_, rest) != text) return false;
  tokens.insert(tokens.end(), rest.begin(), rest.end());
  return true;
}

}  // namespace verbatim
