#pragma once

#include <string>
#include <vector>

#include "accelerator/cycles/block.h"

namespace verbatim::accelerator {

/// Bars in groups, one bar of each series in a group. Values that are not above 0 have no bar.
struct Bars {
  std::string title;
  std::string y_label;
  std::vector<std::string> series;
  struct Group {
    std::string name;
    std::vector<double> values;  ///< one for each series
  };
  std::vector<Group> groups;
};

/// The bars as SVG, in colours for light and dark pages, each with its value.
std::string svg(const Bars& bars);

/// The times of blocks as SVG: rows for memory, array and SFU, from left to right.
std::string timeline(const std::string& title, const std::vector<BlockTimes>& times);

}  // namespace verbatim::accelerator
