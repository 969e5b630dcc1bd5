#include "prepare/converted_vocabulary.h"

#include <algorithm>

#include "base/error.h"
#include "base/printable.h"

namespace verbatim {

namespace {

/// Texts whose tokens are compared: spaces in every place, numbers, cases, marks, lines, scripts, bytes that
/// few vocabularies have pieces for, and code.
constexpr const char* kProbes[] = {
    "",
    " ",
    "Hello, world! It's 1234567 o'clock; we'll DON'T stop.",
    "  two spaces   and three\tand a tab\t\t",
    "def fibonacci(n):\n    if n < 2:\n        return n\r\n\n\n    return fibonacci(n - 1)  # ok\n",
    "\n\n leading lines",
    "Grüße aus München, naïve café, \u00e9, ﬁne ½ ①",
    "こんにちは世界。数字は１２３です",
    "Привет, мир! Ελληνικά, עברית, العربية, हिन्दी, ไทย",
    "🙂👩‍👩‍👧‍👦🏳️‍🌈 emoji\u00a0with\u2003spaces\u200b",
    "https://example.org/a_b?c=d&e=%20f#g {\"json\": [1.5e-3, null]} <b>x</b> $5.00 100% a@b.c",
    "camelCase snake_case CONSTANT_CASE x2y3 0xFF 3.14159 1,000,000",
    "▁mark ▁▁ <0x0A> <unk> [PAD5]",
};
constexpr const char* kDecomposed = "Cafe\u0301 au lait, Mu\u0308nchen";

/// Whether a vocabulary has no token of that number, or one that fills GGUF's lists up.
bool is_filling(const Tokenizer& tokenizer, Token token) {
  if (token >= tokenizer.vocab_size()) return true;
  const std::string_view text = tokenizer.vocabulary_text(token);
  return text.empty() || (!tokenizer.is_control(token) && text == filling_text(token));
}

}  // namespace

std::vector<std::string> VocabularyLoss::warnings() const {
  std::vector<std::string> lines;
  if (composition) {
    lines.emplace_back(
        "the model composes characters (NFC) before it cuts a text, which a GGUF file cannot say: texts with "
        "decomposed ones, which are rare, get other tokens");
  }
  if (later_spaces) {
    lines.emplace_back(
        "the model puts a space first only at the start of a text, which a GGUF file cannot say: text after "
        "a special token gets one, too");
  }
  return lines;
}

std::string filling_text(int64_t token) {
  return fmt::format("[PAD{}]", token);
}

void require_same_tokens(const Tokenizer& original, const Tokenizer& converted, const VocabularyLoss& loss,
                         const std::string& where) {
  const Token size = std::max(original.vocab_size(), converted.vocab_size());
  for (Token token = 0; token < size; ++token) {
    const bool nothing = is_filling(original, token);
    if (nothing && is_filling(converted, token)) continue;
    const bool same = !nothing && token < converted.vocab_size() &&
                      original.is_control(token) == converted.is_control(token) &&
                      original.vocabulary_text(token) == converted.vocabulary_text(token) &&
                      original.piece_bytes(token, false) == converted.piece_bytes(token, false) &&
                      original.piece_bytes(token, true) == converted.piece_bytes(token, true);
    if (same) continue;
    bad_input("{}: token {} ({}) would mean something else in the other format", where, token,
              printable((nothing ? converted : original).vocabulary_text(token)));
  }
  std::vector<std::string> texts(std::begin(kProbes), std::end(kProbes));
  if (!loss.composition) texts.emplace_back(kDecomposed);
  for (const std::string& text : texts) {
    for (const bool special : {false, true}) {
      if (special && loss.later_spaces) continue;
      const Tokenizer::EncodeOptions options{.add_bos = true, .add_end = true, .parse_special = special};
      if (original.encode(text, options) == converted.encode(text, options)) continue;
      bad_input("{}: the text \"{}\" would have other tokens in the other format", where, printable(text));
    }
  }
}

}  // namespace verbatim
