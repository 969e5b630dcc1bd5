#include "base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace verbatim {

namespace {

constexpr std::array<uint32_t, 64> kRoundConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/// The word at a place whose bytes come in the order of SHA-256, the most significant first.
uint32_t big_endian_word(const std::byte* bytes) {
  uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word = word << 8 | std::to_integer<uint32_t>(bytes[i]);
  return word;
}

void put_big_endian(uint64_t number, std::span<std::byte> bytes) {
  for (auto byte = bytes.rbegin(); byte != bytes.rend(); ++byte, number >>= 8) {
    *byte = static_cast<std::byte>(number & 0xff);
  }
}

}  // namespace

void Sha256::take_block(const std::byte* block) {
  std::array<uint32_t, 64> w{};
  for (size_t i = 0; i < 16; ++i) w[i] = big_endian_word(block + 4 * i);
  for (size_t i = 16; i < w.size(); ++i) {
    const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
    const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (size_t i = 0; i < w.size(); ++i) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t first = h + s1 + ((e & f) ^ (~e & g)) + kRoundConstants[i] + w[i];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t second = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const std::array<uint32_t, 8> change = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < state_.size(); ++i) state_[i] += change[i];
}

Sha256& Sha256::add(std::span<const std::byte> bytes) {
  size_t held = bytes_ % kBlock;
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    if (held == 0 && bytes.size() >= kBlock) {
      take_block(bytes.data());
      bytes = bytes.subspan(kBlock);
      continue;
    }
    const size_t taken = std::min(bytes.size(), kBlock - held);
    std::memcpy(rest_.data() + held, bytes.data(), taken);
    bytes = bytes.subspan(taken);
    held = (held + taken) % kBlock;
    if (held == 0) take_block(rest_.data());
  }
  return *this;
}

Digest Sha256::digest() {
  const uint64_t bits = bytes_ * 8;
  constexpr std::array<std::byte, kBlock> kPadding = {std::byte{0x80}};
  const size_t held = bytes_ % kBlock;
  const size_t room = kBlock - sizeof(bits);
  add(std::span(kPadding).first(held < room ? room - held : kBlock + room - held));
  std::array<std::byte, sizeof(bits)> length{};
  put_big_endian(bits, length);
  add(length);
  Digest digest{};
  for (size_t i = 0; i < state_.size(); ++i) put_big_endian(state_[i], std::span(digest).subspan(4 * i, 4));
  return digest;
}

std::string hexadecimal(const Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : digest) {
    text += kDigits[std::to_integer<size_t>(byte) >> 4];
    text += kDigits[std::to_integer<size_t>(byte) & 15];
  }
  return text;
}

}  // namespace verbatim
