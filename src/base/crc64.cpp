#include "base/crc64.h"

#include <array>
#include <bit>
#include <cstring>

namespace verbatim {

static_assert(std::endian::native == std::endian::little, "words are taken as they lie");

namespace {

constexpr uint64_t kPolynomial = 0xc96c5795d7870f42u;
constexpr size_t kSlices = 16;

/// tables[n][b]: what byte b does to the checksum when n bytes follow it.
using Tables = std::array<std::array<uint64_t, 256>, kSlices>;

constexpr Tables make_tables() {
  Tables tables{};
  for (size_t byte = 0; byte < 256; ++byte) {
    uint64_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = sum;
  }
  for (size_t slice = 1; slice < kSlices; ++slice) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint64_t sum = tables[slice - 1][byte];
      tables[slice][byte] = (sum >> 8) ^ tables[0][sum & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

/// The eight bytes of a word, followed by `slice` others.
uint64_t take_word(uint64_t word, size_t slice) {
  uint64_t sum = 0;
  for (size_t i = 0; i < 8; ++i) sum ^= kTables[slice + 7 - i][word >> (8 * i) & 0xff];
  return sum;
}

}  // namespace

uint64_t crc64(std::span<const std::byte> bytes, uint64_t before) {
  uint64_t sum = ~before;
  while (bytes.size() >= 16) {
    uint64_t words[2];
    std::memcpy(words, bytes.data(), sizeof(words));
    sum = take_word(words[0] ^ sum, 8) ^ take_word(words[1], 0);
    bytes = bytes.subspan(16);
  }
  for (const std::byte byte : bytes) {
    sum = (sum >> 8) ^ kTables[0][(sum ^ static_cast<uint64_t>(byte)) & 0xff];
  }
  return ~sum;
}

}  // namespace verbatim
