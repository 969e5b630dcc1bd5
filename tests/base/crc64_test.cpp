#include "base/crc64.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace verbatim {
namespace {

uint64_t crc_of(std::string_view text) {
  return crc64(std::as_bytes(std::span(text)));
}

TEST(Crc64, GivesTheKnownChecksums) {
  EXPECT_EQ(crc_of(""), 0u);
  EXPECT_EQ(crc_of("123456789"), 0x995dc9bbdf1939fau);  // the catalogue's check value
  EXPECT_EQ(crc_of("This is a test of the emergency broadcast system."), 0x27db187fc15bbc72u);
}

/// One bit at a time, as the definition says.
uint64_t slow_crc(std::string_view text) {
  uint64_t sum = ~uint64_t{0};
  for (const char c : text) {
    sum ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) != 0 ? 0xc96c5795d7870f42u : 0);
  }
  return ~sum;
}

TEST(Crc64, OfEveryLengthAndPlaceIsThatOfTheDefinition) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>(i * 37 + i / 7);
  for (size_t begin = 0; begin < 20; ++begin) {
    for (size_t length = 0; length + begin < text.size(); length += 3) {
      const std::string_view piece = std::string_view(text).substr(begin, length);
      ASSERT_EQ(crc_of(piece), slow_crc(piece)) << begin << " " << length;
    }
  }
}

TEST(Crc64, CanBeTakenInPieces) {
  const std::string_view text = "what lies in a file in one piece may be written in many, of any length";
  const auto bytes = std::as_bytes(std::span(text));
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(crc64(bytes.subspan(cut), crc64(bytes.first(cut))), crc_of(text));
  }
}

TEST(Crc64, SeesEveryFlippedBit) {
  std::string text(100, 'x');
  const uint64_t before = crc_of(text);
  for (size_t bit = 0; bit < text.size() * 8; ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    EXPECT_NE(crc_of(text), before);
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
  }
}

}  // namespace
}  // namespace verbatim
