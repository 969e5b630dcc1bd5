#include "kv/f32.h"

#include <gtest/gtest.h>

#include <limits>

#include "kv/make_cache.h"
#include "support/random.h"
#include "verbatim/error.h"

namespace verbatim {
namespace f32_test {
namespace {

// Reads a head's element back by the layout that attention/attention.h states.
float key_at(const HeadCache& head, int64_t position, int64_t d) {
  const float* const chunk = head.f32_keys + position / 128 * head.chunk_stride;
  const int64_t slot = position % 128;
  return chunk[(slot / 16 * head.width + d) * 16 + slot % 16];
}

float value_at(const HeadCache& head, int64_t position, int64_t d) {
  const float* const chunk = head.f32_values + position / 128 * head.chunk_stride;
  return chunk[(d / 16 * 128 + position % 128) * 16 + d % 16];
}

TEST(F32Cache, HoldsEveryBitOfAKeyAndAValueWhereTheLayoutSays) {
  const CacheShape shape{2, 3, 40};
  F32Cache cache(shape, 300);
  EXPECT_EQ(cache.capacity(), 384);
  EXPECT_EQ(cache.bytes(1), 2 * 3 * 64 * 2 * 4);
  const auto keys = test::random_floats(2 * 3 * 300 * 40, 1);
  const auto values = test::random_floats(2 * 3 * 300 * 40, 2);
  const auto index = [](int64_t layer, int64_t head, int64_t position) {
    return static_cast<size_t>(((layer * 3 + head) * 300 + position) * 40);
  };
  for (const bool again : {false, true}) {  // a position may be written again
    for (int64_t layer = 0; layer < 2; ++layer) {
      for (int64_t head = 0; head < 3; ++head) {
        for (int64_t p = 0; p < 300; ++p) {
          const size_t at = index(layer, head, again ? p : 299 - p);
          cache.write(layer, head, p, &keys[at], &values[at]);
        }
      }
    }
  }
  for (int64_t layer = 0; layer < 2; ++layer) {
    for (int64_t head = 0; head < 3; ++head) {
      const HeadCache stored = cache.head(layer, head);
      ASSERT_EQ(stored.width, 64);
      for (int64_t p = 0; p < 300; ++p) {
        for (int64_t d = 0; d < 64; ++d) {
          const size_t i = index(layer, head, p) + static_cast<size_t>(d);
          ASSERT_EQ(key_at(stored, p, d), d < 40 ? keys[i] : 0.0f);
          ASSERT_EQ(value_at(stored, p, d), d < 40 ? values[i] : 0.0f);
        }
      }
    }
  }
}

// A row that may not see a position multiplies its values by zero.
TEST(F32Cache, StoresFiniteValues) {
  F32Cache cache({1, 1, 32}, 128);
  std::vector<float> value(32, 1.0f);
  value[0] = std::numeric_limits<float>::infinity();
  value[1] = -value[0];
  value[2] = std::numeric_limits<float>::quiet_NaN();
  cache.write(0, 0, 5, value.data(), value.data());
  const HeadCache head = cache.head(0, 0);
  EXPECT_EQ(value_at(head, 5, 0), std::numeric_limits<float>::max());
  EXPECT_EQ(value_at(head, 5, 1), std::numeric_limits<float>::lowest());
  EXPECT_EQ(value_at(head, 5, 2), 0.0f);
  EXPECT_EQ(value_at(head, 5, 3), 1.0f);
}

TEST(F32Cache, IsMadeByItsName) {
  const CacheOptions options = parse_cache("f32", "test");
  EXPECT_EQ(cache_name(options), "f32");
  EXPECT_TRUE(make_cache(options, {1, 1, 32}, 10)->reads_f32_queries());
  EXPECT_FALSE(make_cache({}, {1, 1, 32}, 10)->reads_f32_queries());
  EXPECT_THROW(parse_cache("f32:bits=4", "test"), Error);
}

}  // namespace
}  // namespace f32_test
}  // namespace verbatim
