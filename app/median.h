#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace verbatim::app {

/// The middle one of the values in ascending order, of which there is at least one; of two in the middle the
/// higher one.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace verbatim::app
