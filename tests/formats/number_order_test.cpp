#include "formats/number_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/float16.h"
#include "support/random.h"

namespace verbatim {
namespace {

NumberTable table_of(const std::vector<float>& numbers, int64_t columns) {
  return {std::ssize(numbers) / columns, columns, [&numbers, columns](int64_t index, std::span<float> row) {
            std::copy_n(numbers.begin() + index * columns, columns, row.begin());
          }};
}

/// The smallest number for which at most `count` are larger, by sorting.
float by_sorting(std::vector<float> numbers, int64_t count) {
  std::sort(numbers.begin(), numbers.end(), std::greater());
  return numbers[static_cast<size_t>(count)];
}

void expect_as_by_sorting(const std::vector<float>& first, const std::vector<float>& second) {
  const std::vector<NumberTable> tables = {table_of(first, 10), table_of(second, 30)};
  std::vector<float> all = first;
  all.insert(all.end(), second.begin(), second.end());
  for (const int threads : {1, 3}) {
    ThreadTeam team(threads);
    for (const int64_t count :
         {int64_t{0}, int64_t{1}, int64_t{17}, std::ssize(all) / 2, std::ssize(all) - 1}) {
      EXPECT_EQ(number_with_larger(tables, count, team), by_sorting(all, count)) << count;
    }
    EXPECT_EQ(number_with_larger(tables, std::ssize(all), team), 0.0f);
  }
}

TEST(NumberOrder, IsThatOfSortedNumbersOfBothSigns) {
  expect_as_by_sorting(test::random_floats(300, 1), test::random_floats(600, 2));
}

TEST(NumberOrder, IsThatOfSortedBf16NumbersToo) {
  std::vector<float> first = test::random_floats(300, 3);
  std::vector<float> second = test::random_floats(600, 4);
  for (std::vector<float>* numbers : {&first, &second}) {
    for (float& number : *numbers) number = to_float(to_bfloat16(number));
  }
  expect_as_by_sorting(first, second);
  for (float& number : first) number = -std::abs(number);
  for (float& number : second) number = -std::abs(number);
  expect_as_by_sorting(first, second);
}

}  // namespace
}  // namespace verbatim
