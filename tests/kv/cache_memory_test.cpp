#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <vector>

#include "kv/make_cache.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

constexpr CacheShape kShape{.layers = 16, .kv_heads = 8, .head_dim = 128};
constexpr int64_t kCapacity = 1 << 17;

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0;
  int64_t resident = 0;
  file >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

class CacheMemory : public testing::TestWithParam<CacheOptions::Kind> {};

INSTANTIATE_TEST_SUITE_P(, CacheMemory,
                         testing::Values(CacheOptions::Kind::kBf16, CacheOptions::Kind::kF16,
                                         CacheOptions::Kind::kF32, CacheOptions::Kind::kInt8,
                                         CacheOptions::Kind::kHierarchical),
                         [](const auto& info) { return cache_name({.kind = info.param}); });

// However long the context may become, and with huge pages: the caches reserve gigabytes here.
TEST_P(CacheMemory, IsTakenOnlyForWhatIsWritten) {
  TOO_LONG_FOR_SANITIZERS();
  const auto cache = make_cache({.kind = GetParam()}, kShape, kCapacity);
  const std::vector<float> ones(128, 1.0f);
  const int64_t before = resident_bytes();
  for (int64_t end = 256; end <= 768; end += 256) {
    for (int64_t layer = 0; layer < kShape.layers; ++layer) {
      for (int64_t head = 0; head < kShape.kv_heads; ++head) {
        for (int64_t p = end - 256; p < end; ++p) cache->write(layer, head, p, ones.data(), ones.data());
        if (cache->has_positions_to_encode(layer, end - 1))
          cache->encode_older_positions(layer, head, end - 1);
      }
      cache->finish_encoding(layer, end - 1);
    }
    cache->set_length(end);
    // Each of a cache's buffers may end in a huge page that is not full.
    EXPECT_LE(resident_bytes() - before, cache->bytes(end) + (8 << 20)) << end;
  }
}

}  // namespace
}  // namespace verbatim
