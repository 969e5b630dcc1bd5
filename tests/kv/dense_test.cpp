#include "kv/dense.h"

#include <gtest/gtest.h>

#include "support/random.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

// Reads a head's element back by the layout that attention/attention.h states.
float key_at(const HeadCache& head, int64_t width, int64_t position, int64_t d) {
  const BFloat16* const chunk = head.keys + position / 128 * head.chunk_stride;
  const int64_t slot = position % 128;
  return to_float(chunk[slot / 16 * width * 16 + d / 2 * 32 + slot % 16 * 2 + d % 2]);
}

float value_at(const HeadCache& head, int64_t position, int64_t d) {
  const BFloat16* const chunk = head.values + position / 128 * head.chunk_stride;
  const int64_t slot = position % 128;
  return to_float(chunk[d / 16 * 128 * 16 + slot / 2 * 32 + d % 16 * 2 + slot % 2]);
}

TEST(DenseCache, HoldsEveryKeyAndValueWhereTheLayoutSays) {
  const CacheShape shape{2, 3, 40};
  DenseCache cache(shape, 300);
  EXPECT_EQ(cache.width(), 64);
  EXPECT_EQ(cache.capacity(), 384);
  EXPECT_EQ(cache.bytes_per_position(), 2 * 3 * 64 * 2 * 2);
  const auto keys = test::random_floats(2 * 3 * 300 * 40, 1);
  const auto values = test::random_floats(2 * 3 * 300 * 40, 2);
  const auto index = [](int64_t layer, int64_t head, int64_t position) {
    return static_cast<size_t>(((layer * 3 + head) * 300 + position) * 40);
  };
  for (int64_t layer = 0; layer < 2; ++layer) {
    for (int64_t head = 0; head < 3; ++head) {
      for (int64_t p = 0; p < 300; ++p) {
        cache.write(layer, head, p, &keys[index(layer, head, p)], &values[index(layer, head, p)]);
      }
    }
  }
  for (int64_t layer = 0; layer < 2; ++layer) {
    for (int64_t head = 0; head < 3; ++head) {
      const HeadCache stored = cache.head(layer, head);
      for (int64_t p = 0; p < 300; ++p) {
        for (int64_t d = 0; d < 64; ++d) {
          const size_t i = index(layer, head, p) + static_cast<size_t>(d);
          ASSERT_EQ(key_at(stored, 64, p, d), d < 40 ? to_float(to_bfloat16(keys[i])) : 0.0f);
          ASSERT_EQ(value_at(stored, p, d), d < 40 ? to_float(to_bfloat16(values[i])) : 0.0f);
        }
      }
    }
  }
}

TEST(DenseCache, WritingAPositionAgainReplacesItAndNothingElse) {
  DenseCache cache({1, 1, 32}, 200);
  const std::vector<float> ones(32, 1.0f);
  const std::vector<float> twos(32, 2.0f);
  for (int64_t p = 0; p < 200; ++p) cache.write(0, 0, p, ones.data(), ones.data());
  cache.write(0, 0, 130, twos.data(), twos.data());
  const HeadCache head = cache.head(0, 0);
  for (int64_t p = 0; p < 200; ++p) {
    for (int64_t d = 0; d < 32; ++d) {
      ASSERT_EQ(key_at(head, 32, p, d), p == 130 ? 2.0f : 1.0f);
      ASSERT_EQ(value_at(head, p, d), p == 130 ? 2.0f : 1.0f);
    }
  }
}

TEST(DenseCache, ACapacityBeyondTheMachineIsAMachineError) {
  try {
    const DenseCache cache({1000, 1000, 128}, int64_t{1} << 30);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMachine);
  }
}

}  // namespace
}  // namespace verbatim
