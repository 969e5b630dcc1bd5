#include "text/added_tokens.h"

#include <unicode/uchar.h>

#include <algorithm>

#include "base/utf8.h"

namespace verbatim {

namespace {

bool is_word_character(uint32_t c) {
  const auto character = static_cast<UChar32>(c);
  return u_isUAlphabetic(character) != 0 || u_hasBinaryProperty(character, UCHAR_JOIN_CONTROL) != 0 ||
         (U_GET_GC_MASK(character) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0;
}

bool is_space(uint32_t c) {
  return u_isUWhiteSpace(static_cast<UChar32>(c)) != 0;
}

// The start of the character that ends before `offset`.
size_t previous(std::string_view text, size_t offset) {
  do --offset;
  while (offset > 0 && (static_cast<unsigned char>(text[offset]) & 0xC0u) == 0x80u);
  return offset;
}

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  const bool left = begin == 0 || !is_word_character(utf8_character(text, previous(text, begin)));
  const bool right = end == text.size() || !is_word_character(utf8_character(text, end));
  return left && right;
}

/// Whether one of the ranges, which ascend, holds these bytes.
bool lies_within(const std::vector<ByteRange>& ranges, size_t begin, size_t end) {
  const auto range = std::upper_bound(ranges.begin(), ranges.end(), begin,
                                      [](size_t at, const ByteRange& other) { return at < other.end; });
  return range != ranges.end() && range->begin <= begin && end <= range->end;
}

}  // namespace

void AddedTokens::add(AddedToken token) {
  if (token.content.empty()) return;
  const auto same = [&](const AddedToken& other) { return other.content == token.content; };
  const auto first_byte = static_cast<unsigned char>(token.content[0]);
  std::vector<size_t>& bucket = by_first_byte_[first_byte];
  const auto known = std::find_if(bucket.begin(), bucket.end(), [&](size_t i) { return same(tokens_[i]); });
  if (known != bucket.end()) {
    tokens_[*known] = std::move(token);
    return;
  }
  const auto place = std::find_if(bucket.begin(), bucket.end(),
                                  [&](size_t i) { return tokens_[i].content.size() < token.content.size(); });
  bucket.insert(place, tokens_.size());
  tokens_.push_back(std::move(token));
}

const AddedToken* AddedTokens::match(std::string_view text, size_t offset, bool special,
                                     const std::vector<ByteRange>* within) const {
  for (const size_t i : by_first_byte_[static_cast<unsigned char>(text[offset])]) {
    const AddedToken& token = tokens_[i];
    if (token.special && !special) continue;
    if (text.compare(offset, token.content.size(), token.content) != 0) continue;
    if (token.special && within != nullptr && !lies_within(*within, offset, offset + token.content.size())) {
      continue;
    }
    return &token;
  }
  return nullptr;
}

std::vector<TextSegment> AddedTokens::split(std::string_view text, bool special,
                                            const std::vector<ByteRange>* within) const {
  std::vector<TextSegment> segments;
  size_t begin = 0;
  size_t offset = 0;
  while (!tokens_.empty() && offset < text.size()) {
    const AddedToken* token = match(text, offset, special, within);
    if (token == nullptr) {
      ++offset;
      continue;
    }
    size_t end = offset + token->content.size();
    if (token->single_word && !stands_alone(text, offset, end)) {  // nor is a shorter one looked for in it
      offset = end;
      continue;
    }
    if (token->strip_left) {
      while (offset > begin && is_space(utf8_character(text, previous(text, offset))))
        offset = previous(text, offset);
    }
    if (token->strip_right) {
      while (end < text.size() && is_space(utf8_character(text, end))) end += utf8_length(text[end]);
    }
    if (offset > begin) segments.push_back({text.substr(begin, offset - begin), -1});
    segments.push_back({text.substr(offset, end - offset), token->id});
    begin = offset = end;
  }
  if (begin < text.size()) segments.push_back({text.substr(begin), -1});
  return segments;
}

}  // namespace verbatim
