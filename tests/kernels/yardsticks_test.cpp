#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "support/machine_paths.h"

namespace verbatim {
namespace {

class Yardsticks : public ::testing::TestWithParam<test::MachinePath> {};

TEST_P(Yardsticks, ReadingXorsEveryWordOnce) {
  std::mt19937_64 generator(1);
  std::vector<std::byte> data(120000);
  for (std::byte& byte : data) byte = static_cast<std::byte>(generator());
  for (const size_t size : {0u, 1u, 7u, 8u, 63u, 64u, 2047u, 2048u, 2049u, 32768u, 65536u, 119990u}) {
    for (const size_t first : {0u, 3u}) {
      uint64_t expected = 0;
      for (size_t at = 0; at < size; at += 8) {
        uint64_t word = 0;
        std::memcpy(&word, data.data() + first + at, std::min<size_t>(8, size - at));
        expected ^= word;
      }
      EXPECT_EQ(GetParam().table->read_all(data.data() + first, static_cast<int64_t>(size)), expected)
          << size << " bytes from " << first;
    }
  }
}

TEST_P(Yardsticks, MultiplyingCountsItsOperations) {
  float sums[16];
  const int64_t one = GetParam().table->multiply_registers(1, sums);
  EXPECT_GT(one, 0);
  EXPECT_EQ(GetParam().table->multiply_registers(100, sums), 100 * one);
}

INSTANTIATE_TEST_SUITE_P(, Yardsticks, testing::ValuesIn(test::machine_paths()),
                         test::path_name<testing::TestParamInfo<test::MachinePath>>);

}  // namespace
}  // namespace verbatim
