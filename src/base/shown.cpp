#include <algorithm>

#include "base/utf8.h"
#include "verbatim/text.h"

namespace verbatim {

namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

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
    size_t valid = std::min(find_invalid_utf8(text), text.size());
    for (; valid > 0; text.remove_prefix(1)) {
      const std::string_view character = text.substr(0, utf8_length(text[0]));
      result += steers(character) ? " " : character;
      valid -= character.size();
      text.remove_prefix(character.size() - 1);
    }
    if (text.empty()) break;
    result += kReplacement;
    text.remove_prefix(1);
  }
  return result;
}

}  // namespace verbatim
