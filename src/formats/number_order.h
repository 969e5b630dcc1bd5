#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/thread_team.h"

namespace verbatim {

/// A table of numbers, none of them NaN, that is read row by row.
struct NumberTable {
  int64_t rows = 0;
  int64_t columns = 0;
  /// Fills `row`, of as many floats as there are columns. Called from several threads at once.
  std::function<void(int64_t index, std::span<float> row)> read = {};
};

/// Finds the smallest number of the tables for which at most `count` of their numbers are larger, or 0 if
/// `count` is not less than the number of all. Reads the tables twice, or once if all numbers are BF16, in
/// memory that does not grow with them. The result does not depend on the team.
float number_with_larger(std::span<const NumberTable> tables, int64_t count, ThreadTeam& team);

}  // namespace verbatim
