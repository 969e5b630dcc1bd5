#include "accelerator/report/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "accelerator/report/plot.h"

namespace verbatim::accelerator {

namespace {

constexpr double kMapLeft = 84;
constexpr double kMapTop = 66;
constexpr double kCellWidth = 78;
constexpr double kCellHeight = 30;
constexpr double kMapLeast = 700;  // so that a title of one line fits

using Rgb = std::array<double, 3>;
/// From the least to the greatest, ever darker, so that the order is seen without colours too.
constexpr std::array<Rgb, 3> kScale = {{{255, 247, 214}, {72, 168, 160}, {16, 60, 110}}};

/// The colour of a share from 0 to 1, and whether writing on it has to be white.
std::pair<std::string, bool> colour_of(double share) {
  const double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(kScale.size() - 1);
  const size_t from = std::min(static_cast<size_t>(place), kScale.size() - 2);
  const double part = place - static_cast<double>(from);
  Rgb mixed{};
  for (size_t i = 0; i < mixed.size(); ++i)
    mixed[i] = (1 - part) * kScale[from][i] + part * kScale[from + 1][i];
  const double lightness = 0.299 * mixed[0] + 0.587 * mixed[1] + 0.114 * mixed[2];
  return {fmt::format("rgb({:.0f},{:.0f},{:.0f})", mixed[0], mixed[1], mixed[2]), lightness < 120};
}

}  // namespace

std::string svg(const HeatMap& map) {
  double low = INFINITY;
  double high = -INFINITY;
  for (const std::vector<double>& row : map.values) {
    for (const double value : row) {
      if (!std::isfinite(value)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  if (!(low <= high)) return "";
  const double width =
      std::max(kMapLeft + kCellWidth * static_cast<double>(map.columns.size()) + 20, kMapLeast);
  const double bottom = kMapTop + kCellHeight * static_cast<double>(map.rows.size());
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\" role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n<title>{2}</title>\n"
      "<style>.vh-text{{fill:#1c1e21}}.vh-soft{{fill:#555b63}}@media (prefers-color-scheme:dark){{"
      ".vh-text{{fill:#e8eaed}}.vh-soft{{fill:#a7adb5}}}}</style>\n"
      "<text class=\"vh-text\" x=\"8\" y=\"20\" font-size=\"15\" font-weight=\"600\">{2}</text>\n"
      "<text class=\"vh-soft\" x=\"8\" y=\"40\">{3}</text>\n",
      width, bottom + 48, escape(map.title), escape(map.subtitle));
  for (size_t row = 0; row < map.rows.size(); ++row) {
    const double y = kMapTop + kCellHeight * static_cast<double>(row);
    text += fmt::format("<text class=\"vh-text\" x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text>\n",
                        kMapLeft - 8, y + 20, escape(map.rows[row]));
    for (size_t column = 0; column < map.columns.size(); ++column) {
      const double value = map.values[row][column];
      if (!std::isfinite(value)) continue;
      const double x = kMapLeft + kCellWidth * static_cast<double>(column);
      const auto [colour, white] = colour_of(high > low ? (value - low) / (high - low) : 0.5);
      text += fmt::format(
          "<rect x=\"{0:.0f}\" y=\"{1:.0f}\" width=\"{2:.0f}\" height=\"{3:.0f}\" fill=\"{4}\"/><text "
          "x=\"{5:.0f}\" y=\"{6:.0f}\" text-anchor=\"middle\" fill=\"{7}\">{8:.2f}</text>\n",
          x, y, kCellWidth - 2, kCellHeight - 2, colour, x + kCellWidth / 2 - 1, y + 19,
          white ? "#ffffff" : "#1c1e21", value);
    }
  }
  for (size_t column = 0; column < map.columns.size(); ++column) {
    text +=
        fmt::format("<text class=\"vh-text\" x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>\n",
                    kMapLeft + kCellWidth * (static_cast<double>(column) + 0.5), bottom + 16,
                    escape(map.columns[column]));
  }
  text += fmt::format(
      "<text class=\"vh-soft\" x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>\n"
      "<text class=\"vh-soft\" transform=\"translate(16 {:.0f}) rotate(-90)\" "
      "text-anchor=\"middle\">{}</text>\n",
      kMapLeft + kCellWidth * static_cast<double>(map.columns.size()) / 2, bottom + 38, escape(map.x_label),
      (kMapTop + bottom) / 2, escape(map.y_label));
  return text + "</svg>\n";
}

}  // namespace verbatim::accelerator
