#include "structure/structure_vocabulary.h"

#include <algorithm>

#include "base/utf8.h"

namespace verbatim {

namespace {

/// The classes whose tokens a vocabulary remembers.
constexpr size_t kMostClasses = 16;
/// Tokens of more characters than this are not counted as whole characters of a class: they are rare.
constexpr size_t kMostCharacters = 64;

/// The number of characters of a text that are all of a class; 0 if some are not, or not whole.
size_t characters_of_class(std::string_view text, const ByteSet& lacking) {
  if (find_invalid_utf8(text) != std::string_view::npos) return 0;
  size_t count = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && lacking.test(byte)) return 0;
    if ((byte & 0xC0) != 0x80) ++count;
  }
  return count;
}

}  // namespace

StructureVocabulary::StructureVocabulary(std::shared_ptr<const Tokenizer> tokenizer, int32_t size)
    : tokenizer_(std::move(tokenizer)), encoder_(*tokenizer_), size_(size) {
  ends_.assign(static_cast<size_t>(size) + 1, 0);
  std::vector<std::pair<std::string, int32_t>> tokens;
  const int32_t known = std::min(size, tokenizer_->vocab_size());
  for (int32_t t = 0; t < size; ++t) {
    std::string text;
    if (t < known && !tokenizer_->is_control(t)) text = tokenizer_->piece_bytes(t, false);
    texts_ += text;
    ends_[static_cast<size_t>(t) + 1] = texts_.size();
    if (!text.empty()) tokens.emplace_back(std::move(text), t);
  }
  tokens_ = TokenTrie(std::move(tokens));
}

std::shared_ptr<const ClassTokens> StructureVocabulary::make_class_tokens(const ByteSet& lacking) const {
  auto made = std::make_shared<ClassTokens>();
  std::vector<std::pair<std::string, int32_t>> rest;
  for (int32_t t = 0; t < size_; ++t) {
    const std::string_view own = text(t);
    if (own.empty()) continue;
    const size_t characters = characters_of_class(own, lacking);
    if (characters == 0 || characters > kMostCharacters) {
      rest.emplace_back(own, t);
      continue;
    }
    while (made->within.size() <= characters) made->within.emplace_back(words(), 0);
    set_bit(made->within[characters], t);
  }
  if (made->within.empty()) made->within.emplace_back(words(), 0);
  for (size_t n = 1; n < made->within.size(); ++n) {
    for (size_t i = 0; i < words(); ++i) made->within[n][i] |= made->within[n - 1][i];
  }
  made->rest = TokenTrie(std::move(rest));
  return made;
}

std::shared_ptr<const ClassTokens> StructureVocabulary::class_tokens(const ByteSet& lacking) const {
  const std::string key = lacking.to_string();
  {
    const std::lock_guard lock(mutex_);
    const auto found = classes_.find(key);
    if (found != classes_.end()) return found->second;
  }
  std::shared_ptr<const ClassTokens> made = make_class_tokens(lacking);
  const std::lock_guard lock(mutex_);
  if (classes_.size() >= kMostClasses) classes_.clear();
  return classes_.try_emplace(key, std::move(made)).first->second;
}

std::optional<int32_t> StructureVocabulary::special(std::string_view spelling) const {
  const std::optional<Token> token = tokenizer_->find(spelling);
  if (!token || *token < 0 || *token >= size_ || !text(*token).empty()) return std::nullopt;
  return token;
}

}  // namespace verbatim
