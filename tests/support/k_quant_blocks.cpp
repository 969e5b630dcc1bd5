#include "support/k_quant_blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <stdexcept>

#include "base/float16.h"
#include "checkpoint/gguf_blocks.h"

namespace verbatim::test {

namespace {

using Block = std::string;

void put_half(Block& block, size_t at, Float16 value) {
  block[at] = static_cast<char>(value.bits & 255);
  block[at + 1] = static_cast<char>(value.bits >> 8);
}

void add_bits(Block& block, size_t at, int bits) {
  block[at] = static_cast<char>(static_cast<uint8_t>(block[at]) | bits);
}

int nearest(float value, int least, int most) {
  return std::clamp(static_cast<int>(std::lround(value)), least, most);
}

Block q4_k_block(const float* values) {
  std::array<float, 8> steps{};
  std::array<float, 8> offsets{};
  for (size_t g = 0; g < 8; ++g) {
    const auto [low, high] = std::minmax_element(values + 32 * g, values + 32 * g + 32);
    offsets[g] = std::max(-*low, 0.0f);
    steps[g] = (std::max(*high, 0.0f) + offsets[g]) / 15.0f;
  }
  const Float16 scale = to_float16(*std::ranges::max_element(steps) / 63.0f);
  const Float16 offset = to_float16(*std::ranges::max_element(offsets) / 63.0f);
  Block block(144, '\0');
  put_half(block, 0, scale);
  put_half(block, 2, offset);
  for (size_t g = 0; g < 8; ++g) {
    const int s = scale.bits == 0 ? 0 : nearest(steps[g] / to_float(scale), 0, 63);
    const int m = offset.bits == 0 ? 0 : nearest(offsets[g] / to_float(offset), 0, 63);
    if (g < 4) {
      add_bits(block, 4 + g, s);
      add_bits(block, 8 + g, m);
    } else {
      add_bits(block, 8 + g, (s & 15) | (m & 15) << 4);
      add_bits(block, g, s >> 4 << 6);
      add_bits(block, 4 + g, m >> 4 << 6);
    }
    const float step = to_float(scale) * static_cast<float>(s);
    const float least = to_float(offset) * static_cast<float>(m);
    for (size_t i = 0; i < 32; ++i) {
      const int code = step == 0.0f ? 0 : nearest((values[32 * g + i] + least) / step, 0, 15);
      add_bits(block, 16 + g / 2 * 32 + i, code << g % 2 * 4);
    }
  }
  return block;
}

Block q6_k_block(const float* values) {
  std::array<float, 16> steps{};
  for (size_t i = 0; i < 256; ++i) steps[i / 16] = std::max(steps[i / 16], std::fabs(values[i]) / 31.0f);
  const Float16 scale = to_float16(*std::ranges::max_element(steps) / 127.0f);
  Block block(210, '\0');
  put_half(block, 208, scale);
  for (size_t g = 0; g < 16; ++g) {
    const int s = scale.bits == 0 ? 0 : nearest(steps[g] / to_float(scale), -128, 127);
    block[192 + g] = static_cast<char>(s);
    const float step = to_float(scale) * static_cast<float>(s);
    for (size_t i = 16 * g; i < 16 * g + 16; ++i) {
      const int code = 32 + (step == 0.0f ? 0 : nearest(values[i] / step, -32, 31));
      add_bits(block, i / 128 * 64 + i % 64, (code & 15) << i % 128 / 64 * 4);
      add_bits(block, 128 + i / 128 * 32 + i % 32, code >> 4 << i % 128 / 32 * 2);
    }
  }
  return block;
}

}  // namespace

std::string encode_k_quants(DType dtype, const std::vector<float>& values) {
  if (dtype != DType::kQ4_K && dtype != DType::kQ6_K) throw std::invalid_argument("only Q4_K and Q6_K");
  if (values.size() % 256 != 0) throw std::invalid_argument("no whole blocks");
  std::string bytes;
  for (size_t i = 0; i < values.size(); i += 256) {
    bytes += dtype == DType::kQ4_K ? q4_k_block(values.data() + i) : q6_k_block(values.data() + i);
  }
  return bytes;
}

std::vector<size_t> places_of_scales(DType dtype) {
  switch (dtype) {
    case DType::kQ2_K:
      return {80, 82};
    case DType::kQ3_K:
      return {108};
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ6_K:
      return {208};
    default:
      throw std::invalid_argument("no type of K-quants");
  }
}

std::string random_k_quants(DType dtype, int64_t count, uint32_t seed, bool extreme) {
  std::mt19937 generator(seed);
  const size_t size = block_type(dtype)->bytes;
  std::string bytes(static_cast<size_t>(count) * size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(generator() & 255);
  if (extreme) {
    // Blocks of nothing but ones, and of nothing but zeros, among them.
    for (int64_t b = 0; b < count; b += 5) {
      std::memset(bytes.data() + static_cast<size_t>(b) * size, b % 2 == 0 ? 0 : 255, size);
    }
    return bytes;
  }
  std::uniform_real_distribution<float> scales(-1e-3f, 1e-3f);
  for (int64_t b = 0; b < count; ++b) {
    for (const size_t place : places_of_scales(dtype)) {
      put_half(bytes, static_cast<size_t>(b) * size + place, to_float16(scales(generator)));
    }
  }
  return bytes;
}

}  // namespace verbatim::test
