#include "text/added_tokens.h"

#include <unicode/uchar.h>

#include <algorithm>

#include "base/error.h"
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

void AddedTokens::add(AddedToken token, const std::string& where) {
  if (token.content.size() > kLongestPiece) {
    bad_input("{}: the added token {} has {} bytes; the limit is {}", where, token.id, token.content.size(),
              kLongestPiece);
  }
  if (token.content.empty()) return;
  contents_.add(token.content, static_cast<Token>(tokens_.size()), where);
  tokens_.push_back(std::move(token));
}

const AddedToken* AddedTokens::match(std::string_view text, size_t offset, bool special,
                                     const std::vector<ByteRange>* within) const {
  const auto is_hidden = [&](const AddedToken& token, size_t end) {
    return token.special && (!special || (within != nullptr && !lies_within(*within, offset, end)));
  };
  const AddedToken* longest = nullptr;
  contents_.each_at(text, offset, [&](Token index, size_t end) {
    const AddedToken& token = tokens_[static_cast<size_t>(index)];
    if (!is_hidden(token, end)) longest = &token;
  });
  return longest;
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
    if (token->single_word && !stands_alone(text, offset, end)) {
      offset = end;  // no shorter token is looked for in its text
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
