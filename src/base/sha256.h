#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace verbatim {

/// The 256 bits of a SHA-256.
using Digest = std::array<std::byte, 32>;

/// SHA-256 (FIPS 180-4) of bytes that come in pieces.
class Sha256 {
 public:
  /// Takes in what follows the bytes so far.
  Sha256& add(std::span<const std::byte> bytes);
  /// The digest of all bytes that were added. Nothing may be added afterwards.
  Digest digest();

 private:
  static constexpr size_t kBlock = 64;
  void take_block(const std::byte* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, kBlock> rest_ = {};  // the last bytes, which fill no block yet
  uint64_t bytes_ = 0;                       // so far
};

/// A digest as 64 lower-case hexadecimal digits.
std::string hexadecimal(const Digest& digest);

}  // namespace verbatim
