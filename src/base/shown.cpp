#include "base/shown.h"

#include <cstdint>

namespace verbatim {

namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

/// The bytes of the character that the text begins with; 0 where it begins with no valid one.
size_t character_length(std::string_view text) {
  const auto byte = [&text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Longer than needed, a surrogate, or beyond Unicode.
  if (first == 0xe0 && byte(1) < 0xa0) return 0;
  if (first == 0xed && byte(1) > 0x9f) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

/// Control characters, those of Unicode's second block too, and those that turn the direction of writing.
bool steers(std::string_view character) {
  if (character.size() == 1) return static_cast<unsigned char>(character[0]) < 0x20 || character[0] == 0x7f;
  if (character.size() == 2) return character[0] == '\xc2' && static_cast<unsigned char>(character[1]) < 0xa0;
  return character.starts_with("\xe2\x80") ? character[2] >= '\xa8' && character[2] <= '\xae'
                                           : character >= "\xe2\x81\xa6" && character <= "\xe2\x81\xa9";
}

bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

}  // namespace

std::string shown(std::string_view text, size_t longest) {
  if (text.size() > longest) {
    size_t head = longest * 2 / 3;
    size_t tail = text.size() - longest / 3;
    while (head > 0 && continues(text[head])) --head;
    while (tail < text.size() && continues(text[tail])) ++tail;
    return shown(text.substr(0, head), head) + " ... " + shown(text.substr(tail), text.size());
  }
  std::string result;
  while (!text.empty()) {
    const size_t length = character_length(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    if (length == 0) {
      result += kReplacement;
    } else if (steers(character)) {
      result += ' ';
    } else {
      result += character;
    }
    text.remove_prefix(character.size());
  }
  return result;
}

}  // namespace verbatim
