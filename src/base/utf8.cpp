#include "base/utf8.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace verbatim {

namespace {

struct Lead {
  size_t length;  // 0: no character begins with this byte
  unsigned char second_low;
  unsigned char second_high;
};

// Table 3-7 of the Unicode standard: the second byte is what rules out overlong forms, surrogates and values
// above U+10FFFF.
Lead classify(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// Whether the bytes of `text` can begin a character led by its first byte.
bool continues(std::string_view text, const Lead& lead) {
  for (size_t i = 1; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const unsigned char low = i == 1 ? lead.second_low : 0x80;
    const unsigned char high = i == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) return false;
  }
  return true;
}

}  // namespace

size_t find_invalid_utf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    if (i + 8 <= text.size()) {
      uint64_t word;
      std::memcpy(&word, text.data() + i, sizeof(word));
      if ((word & 0x8080808080808080u) == 0) {
        i += 8;
        continue;
      }
    }
    const Lead lead = classify(static_cast<unsigned char>(text[i]));
    if (lead.length == 0 || text.size() - i < lead.length) return i;
    if (!continues(text.substr(i, lead.length), lead)) return i;
    i += lead.length;
  }
  return std::string_view::npos;
}

std::string valid_utf8(std::string_view text) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t valid = std::min(find_invalid_utf8(text), text.size());
    result += text.substr(0, valid);
    text.remove_prefix(valid);
    if (text.empty()) break;
    result += kReplacement;
    text.remove_prefix(1);
  }
  return result;
}

size_t incomplete_utf8_suffix(std::string_view text) {
  for (size_t length = 1; length <= std::min<size_t>(3, text.size()); ++length) {
    const std::string_view tail = text.substr(text.size() - length);
    const Lead lead = classify(static_cast<unsigned char>(tail[0]));
    if (lead.length > length && continues(tail, lead)) return length;
  }
  return 0;
}

uint32_t utf8_character(std::string_view text, size_t offset) {
  const size_t length = utf8_length(text[offset]);
  uint32_t value = static_cast<unsigned char>(text[offset]);
  if (length > 1) value &= 0x7Fu >> length;
  for (size_t i = 1; i < length; ++i) {
    value = value << 6 | (static_cast<unsigned char>(text[offset + i]) & 0x3Fu);
  }
  return value;
}

void require_utf8(std::string_view text, std::string_view what) {
  const size_t offset = find_invalid_utf8(text);
  if (offset == std::string_view::npos) return;
  bad_input("{} is not valid UTF-8 at byte {} (0x{:02x}): convert it to UTF-8 first", what, offset,
            static_cast<unsigned>(static_cast<unsigned char>(text[offset])));
}

}  // namespace verbatim
