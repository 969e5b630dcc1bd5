#include "prepare/mxfp4_layout.h"

#include <array>

namespace verbatim {

namespace {

constexpr size_t kMxfp4CodeBytes = 16;
constexpr size_t kMxfp4BlockBytes = 1 + kMxfp4CodeBytes;
using Codes = std::array<std::byte, 2 * kMxfp4CodeBytes>;

constexpr std::byte kLow{0x0F};

}  // namespace

void append_mxfp4_codes(std::span<const std::byte> blocks, std::vector<std::byte>& codes) {
  for (size_t at = 0; at < blocks.size(); at += kMxfp4BlockBytes) {
    Codes apart;
    for (size_t i = 0; i < kMxfp4CodeBytes; ++i) {
      const std::byte pair = blocks[at + 1 + i];
      apart[i] = pair & kLow;
      apart[i + kMxfp4CodeBytes] = pair >> 4;
    }
    for (size_t i = 0; i < apart.size(); i += 2) codes.push_back(apart[i] | apart[i + 1] << 4);
  }
}

void append_mxfp4_scales(std::span<const std::byte> blocks, std::vector<std::byte>& scales) {
  for (size_t at = 0; at < blocks.size(); at += kMxfp4BlockBytes) scales.push_back(blocks[at]);
}

void append_mxfp4_blocks(std::span<const std::byte> codes, std::span<const std::byte> scales,
                         std::vector<std::byte>& blocks) {
  for (size_t block = 0; block < scales.size(); ++block) {
    blocks.push_back(scales[block]);
    Codes apart;
    for (size_t i = 0; i < kMxfp4CodeBytes; ++i) {
      const std::byte pair = codes[block * kMxfp4CodeBytes + i];
      apart[2 * i] = pair & kLow;
      apart[2 * i + 1] = pair >> 4;
    }
    for (size_t i = 0; i < kMxfp4CodeBytes; ++i) blocks.push_back(apart[i] | apart[i + kMxfp4CodeBytes] << 4);
  }
}

}  // namespace verbatim
