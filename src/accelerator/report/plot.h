#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace verbatim::accelerator {

struct PlotPoint {
  double x = 0;
  double y = 0;
};

/// A curve: its points in the order in which a line joins them. Points that are not finite are left out.
struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points;
};

struct Plot {
  std::string title;
  std::string subtitle;  ///< a line below it, or empty
  std::string x_label;
  std::string y_label;
  /// Equal ratios of x take equal room, and the ticks are the values of x that there are. All are positive.
  bool logarithmic_x = false;
  /// The ends of the y axis, where they are not to follow from the points.
  std::optional<double> lowest_y = std::nullopt;
  std::optional<double> highest_y = std::nullopt;
  /// A horizontal line across the plot, such as what everything is compared with, or none.
  std::optional<double> level = std::nullopt;
  std::string level_name;
  std::vector<PlotSeries> series;
};

/// The plot as an SVG file that needs no other: axes with ticks, a line with marks for each series, a legend.
/// Its colours suit light and dark pages, whichever the reader prefers, and curves differ by more than their
/// colour. The same plot gives the same bytes.
std::string svg(const Plot& plot);

/// A text as it stands in HTML or SVG. Characters that steer become spaces.
std::string escape(std::string_view text);

/// Round numbers that divide the range from `low` to `high`, low < high, into about `count` parts; none is
/// outside it.
std::vector<double> round_ticks(double low, double high, int count);

}  // namespace verbatim::accelerator
