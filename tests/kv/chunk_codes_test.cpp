#include "kv/chunk_codes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/random.h"

namespace verbatim {
namespace {

constexpr int64_t kHeadDim = 72;  // padded to 128

/// A chunk of random keys and values with its codes.
struct Chunk {
  explicit Chunk(CodedLayout layout_)
      : layout(layout_),
        codes(static_cast<size_t>(layout.record_bytes())),
        lower(static_cast<size_t>(layout.lower_bytes())) {
    for (const BFloat16 x : test::random_bf16(kAttentionChunk * kHeadDim, 1)) keys.push_back(to_float(x));
    for (const BFloat16 x : test::random_bf16(kAttentionChunk * kHeadDim, 2)) values.push_back(to_float(x));
    // Channels of keys differ in size, as those of models do.
    for (size_t i = 0; i < keys.size(); ++i) {
      if (i % kHeadDim == 5) keys[i] = to_float(to_bfloat16(keys[i] * 40.0f + 100.0f));
    }
  }

  ChunkRecord record() {
    return {layout, codes.data(), layout.storage == kCodesBoth ? lower.data() : nullptr};
  }
  void encode() { encode_chunk(keys.data(), values.data(), kHeadDim, record()); }
  void decode(bool upper_only) {
    decoded_keys.resize(keys.size());
    decoded_values.resize(values.size());
    decode_chunk(record(), kHeadDim, upper_only, decoded_keys.data(), decoded_values.data());
  }

  CodedLayout layout;
  std::vector<uint8_t> codes;
  std::vector<uint8_t> lower;
  std::vector<float> keys;
  std::vector<float> values;
  std::vector<float> decoded_keys;
  std::vector<float> decoded_values;
};

/// The step between codes of one group: its range over `steps`.
float step_of(const std::vector<float>& numbers, const std::vector<size_t>& group, float steps) {
  float least = std::numeric_limits<float>::max();
  float largest = std::numeric_limits<float>::lowest();
  for (const size_t i : group) {
    least = std::min(least, numbers[i]);
    largest = std::max(largest, numbers[i]);
  }
  return (largest - least) / steps;
}

std::vector<size_t> positions_of_channel(size_t channel, size_t first, size_t count) {
  std::vector<size_t> group;
  for (size_t p = first; p < first + count; ++p) group.push_back(p * kHeadDim + channel);
  return group;
}

std::vector<size_t> channels_of_position(size_t position, size_t first, size_t count) {
  std::vector<size_t> group;
  for (size_t d = first; d < std::min<size_t>(first + count, kHeadDim); ++d) {
    group.push_back(position * kHeadDim + d);
  }
  return group;
}

void expect_within(const std::vector<float>& numbers, const std::vector<float>& decoded,
                   const std::vector<size_t>& group, float steps, float most) {
  const float step = step_of(numbers, group, steps) * 1.01f;  // scales are BF16, rounded up
  for (const size_t i : group) ASSERT_LE(std::abs(numbers[i] - decoded[i]), step * most + 1e-6f) << i;
}

TEST(ChunkCodes, UpperHalvesAreHalfAStepAwayAndBothASixteenthOfThat) {
  for (const int64_t group : {32, 64, 128}) {
    Chunk chunk({.storage = kCodesBoth, .width = 128, .key_group = group, .value_group = group});
    chunk.encode();
    for (const bool upper_only : {true, false}) {
      chunk.decode(upper_only);
      // A rest of just half a step has no code: the largest is 7 sixteenths.
      const float most = upper_only ? 0.5f : 1.0f / 16;
      const auto size = static_cast<size_t>(group);
      for (size_t first = 0; first < kAttentionChunk; first += size) {
        for (size_t d = 0; d < kHeadDim; ++d) {
          expect_within(chunk.keys, chunk.decoded_keys, positions_of_channel(d, first, size), 15, most);
        }
      }
      for (size_t p = 0; p < kAttentionChunk; ++p) {
        for (size_t first = 0; first < kHeadDim; first += size) {
          expect_within(chunk.values, chunk.decoded_values, channels_of_position(p, first, size), 15, most);
        }
      }
    }
  }
}

TEST(ChunkCodes, CanShareScalesTheOtherWayRound) {
  Chunk chunk({.storage = kCodesBoth, .width = 128, .key_group = 0, .value_group = 0});
  chunk.encode();
  chunk.decode(true);
  for (size_t p = 0; p < kAttentionChunk; ++p) {
    expect_within(chunk.keys, chunk.decoded_keys, channels_of_position(p, 0, kHeadDim), 15, 0.5f);
  }
  for (size_t d = 0; d < kHeadDim; ++d) {
    expect_within(chunk.values, chunk.decoded_values, positions_of_channel(d, 0, kAttentionChunk), 15, 0.5f);
  }
}

TEST(ChunkCodes, APositionCanBeEncodedByItself) {
  Chunk chunk({.storage = kCodesBytes, .width = 128, .key_group = 0, .value_group = 128});
  for (int64_t p = 0; p < kAttentionChunk; ++p) {
    encode_position(p, chunk.keys.data() + p * kHeadDim, chunk.values.data() + p * kHeadDim, kHeadDim,
                    chunk.record());
  }
  chunk.decode(false);
  for (size_t p = 0; p < kAttentionChunk; ++p) {
    const std::vector<size_t> group = channels_of_position(p, 0, kHeadDim);
    expect_within(chunk.keys, chunk.decoded_keys, group, 255, 0.5f);
    expect_within(chunk.values, chunk.decoded_values, group, 255, 0.5f);
  }
}

TEST(ChunkCodes, StandForFiniteNumbersWhateverIsEncoded) {
  Chunk chunk({.storage = kCodesBoth, .width = 128, .key_group = 128, .value_group = 128});
  chunk.keys[3] = std::numeric_limits<float>::quiet_NaN();
  chunk.keys[100] = std::numeric_limits<float>::infinity();
  chunk.values[7] = -std::numeric_limits<float>::infinity();
  chunk.values[8] = std::numeric_limits<float>::max();
  std::fill(chunk.values.begin() + 2 * kHeadDim, chunk.values.begin() + 3 * kHeadDim, 0.0f);
  for (size_t p = 0; p < kAttentionChunk; ++p) chunk.keys[p * kHeadDim + 11] = p == 5 ? 1e-39f : 0.0f;
  // A channel whose range is too small for a scale.
  for (size_t p = 0; p < kAttentionChunk; ++p) chunk.keys[p * kHeadDim + 11] = p == 5 ? 1e-39f : 0.0f;
  chunk.encode();
  for (const bool upper_only : {true, false}) {
    chunk.decode(upper_only);
    for (const float x : chunk.decoded_keys) ASSERT_TRUE(std::isfinite(x));
    for (const float x : chunk.decoded_values) ASSERT_TRUE(std::isfinite(x));
    for (size_t d = 0; d < kHeadDim; ++d) ASSERT_EQ(chunk.decoded_values[2 * kHeadDim + d], 0.0f);
  }
}

}  // namespace
}  // namespace verbatim
