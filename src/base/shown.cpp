#include "base/utf8.h"

namespace verbatim {

namespace {

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
  const std::string valid = valid_utf8(text);
  std::string result;
  for (size_t at = 0; at < valid.size();) {
    const std::string_view character = std::string_view(valid).substr(at, utf8_length(valid[at]));
    result += steers(character) ? " " : character;
    at += character.size();
  }
  return result;
}

}  // namespace verbatim
