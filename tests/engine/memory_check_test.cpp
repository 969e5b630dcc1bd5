#include "engine/memory_check.h"

#include <gtest/gtest.h>

#include "kv/dense.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

TEST(MemoryCheck, LetsPassWhatFitsOrCannotBeKnown) {
  const ContextMemory need{.tokens = 1000, .cache = 5 * kGiB, .draft_cache = kGiB, .workspace = kGiB};
  EXPECT_EQ(need.wanted(), 7 * kGiB);
  require_memory(need, 7 * kGiB);
  require_memory(need, std::nullopt);
  EXPECT_THROW(require_memory(need, 7 * kGiB - 1), Error);
}

TEST(MemoryCheck, WhatIsTakenAlreadyNeedsNoRoom) {
  const ContextMemory need{.tokens = 1000, .cache = 5 * kGiB, .held = 4 * kGiB};
  require_memory(need, kGiB);
  EXPECT_THROW(require_memory(need, kGiB / 2), Error);
}

TEST(MemoryCheck, SaysInOneLineHowMuchItTakesAndHowMuchThereIs) {
  try {
    require_memory({.tokens = 131072, .cache = 16 * kGiB, .workspace = kGiB / 2}, 12 * kGiB);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMachine);
    EXPECT_STREQ(error.what(),
                 "a context of 131072 tokens takes 16.50 GiB of memory, but 12.00 GiB are available: shorten "
                 "the prompt, generate fewer tokens, use a smaller cache, or free memory");
  }
}

TEST(MemoryCheck, KnowsTheSizeOfADenseCache) {
  ModelConfig config;
  config.layers = 3;
  config.kv_heads = 2;
  config.head_dim = 40;
  const DenseCache cache({3, 2, 40}, 300);
  EXPECT_EQ(dense_cache_bytes(config, 300), cache.bytes_per_position() * cache.capacity());
}

}  // namespace
}  // namespace verbatim
