#include "text/byte_level.h"

#include <array>
#include <cstdint>

#include "base/utf8.h"

namespace verbatim {

namespace {

constexpr uint32_t kFirstStandIn = 0x100;  // the bytes without a printable character, in order, from here on
constexpr size_t kCharacters = kFirstStandIn + 68;

struct ByteLevelTables {
  std::array<uint16_t, 256> character{};
  std::array<int16_t, kCharacters> byte{};
};

ByteLevelTables make_tables() {
  ByteLevelTables tables;
  tables.byte.fill(-1);
  uint32_t stand_in = kFirstStandIn;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
    const uint32_t character = printable ? byte : stand_in++;
    tables.character[byte] = static_cast<uint16_t>(character);
    tables.byte[character] = static_cast<int16_t>(byte);
  }
  return tables;
}

const ByteLevelTables& tables() {
  static const ByteLevelTables instance = make_tables();
  return instance;
}

}  // namespace

std::string byte_level_text(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const uint32_t character = tables().character[static_cast<unsigned char>(c)];
    if (character < 0x80) {
      text += static_cast<char>(character);
    } else {
      text += static_cast<char>(0xC0 | character >> 6);
      text += static_cast<char>(0x80 | (character & 0x3F));
    }
  }
  return text;
}

std::optional<std::string> byte_level_bytes(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); i += utf8_length(text[i])) {
    const uint32_t character = utf8_character(text, i);
    if (character >= kCharacters || tables().byte[character] < 0) return std::nullopt;
    bytes += static_cast<char>(tables().byte[character]);
  }
  return bytes;
}

}  // namespace verbatim
