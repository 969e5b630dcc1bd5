#include "text/character_map.h"

#include "base/error.h"
#include "base/utf8.h"

namespace verbatim {

namespace {

// A unit of the trie holds a label in its lowest byte, a flag for an entry that ends here, and the distance
// to the children. Its highest bit is part of the label, so that a unit that holds a value has no byte's
// label.
uint32_t label_of(uint32_t unit) {
  return unit & 0x800000FFu;
}
bool ends_entry(uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
uint32_t distance_of(uint32_t unit) {
  return (unit >> 10) << ((unit & 0x200u) >> 6);
}
uint32_t value_of(uint32_t unit) {
  return unit & 0x7FFFFFFFu;
}

uint32_t read_unit(const std::string& bytes, size_t offset) {
  uint32_t unit = 0;
  for (size_t i = 0; i < 4; ++i) {
    unit |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[offset + i])) << (8 * i);
  }
  return unit;
}

int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

}  // namespace

std::optional<std::string> base64_bytes(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && !text.empty() && text.back() == '=') {
    text.remove_suffix(1);
    ++padding;
  }
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 3);
  uint32_t bits = 0;
  size_t count = 0;
  for (const char c : text) {
    const int value = base64_value(c);
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(static_cast<char>(bits >> count & 0xFF));
    }
  }
  return bytes;
}

CharacterMap::CharacterMap(std::string bytes, const std::string& where) {
  const size_t size = bytes.size() >= 4 ? read_unit(bytes, 0) : 0;
  if (size == 0 || size % 4 != 0 || size > bytes.size() - 4) {
    bad_input("{}: the table of characters is malformed: {} bytes with a trie of {}", where, bytes.size(),
              size);
  }
  units_.reserve(size / 4);
  for (size_t i = 0; i < size / 4; ++i) units_.push_back(read_unit(bytes, 4 + 4 * i));
  texts_ = bytes.substr(4 + size);
  if (find_invalid_utf8(texts_) != std::string_view::npos) {
    bad_input("{}: the table of characters is malformed: its texts are not valid UTF-8", where);
  }
}

std::optional<std::string_view> CharacterMap::find(std::string_view text) const {
  size_t node = distance_of(units_[0]);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    node ^= byte;
    // A byte of zero would meet the units that hold values.
    if (byte == 0 || node >= units_.size() || label_of(units_[node]) != byte) return std::nullopt;
    const uint32_t unit = units_[node];
    node ^= distance_of(unit);
    if (!ends_entry(unit)) continue;
    if (node >= units_.size()) return std::nullopt;
    const uint32_t begin = value_of(units_[node]);
    const bool within_character = begin < texts_.size() && (texts_[begin] & 0xC0) == 0x80;
    if (begin >= texts_.size() || within_character) return std::nullopt;
    const std::string_view rest = std::string_view(texts_).substr(begin);
    return rest.substr(0, rest.find('\0'));
  }
  return std::nullopt;
}

}  // namespace verbatim
