#pragma once

#include <string>
#include <vector>

namespace verbatim::accelerator {

/// Numbers over two axes, each with its value and a colour between those of the least and the greatest.
struct HeatMap {
  std::string title;
  std::string subtitle;
  std::string x_label;
  std::string y_label;
  std::vector<std::string> columns;
  std::vector<std::string> rows;
  std::vector<std::vector<double>> values;  ///< [row][column]; what is not finite has no cell
};

/// The map as SVG. Its cells have colours of their own, so that it looks the same on light and dark pages.
std::string svg(const HeatMap& map);

}  // namespace verbatim::accelerator
