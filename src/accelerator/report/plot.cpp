#include "accelerator/report/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace verbatim::accelerator {

namespace {

constexpr double kWidth = 560;  // with the margins, without the legend
constexpr double kHeight = 420;
constexpr double kLeft = 72;
constexpr double kRight = 24;
constexpr double kTop = 64;
constexpr double kBottom = 60;
constexpr double kFontSize = 13;
constexpr double kCharacter = 0.58 * kFontSize;  // about as wide as letters are
constexpr double kTickRoom = 26;

/// A colour on light and one on dark ground. They differ in lightness too, for those who see few colours.
struct Colour {
  const char* on_light;
  const char* on_dark;
};
constexpr Colour kColours[] = {{"#0060a8", "#6ab7f5"}, {"#c24a00", "#ff9a57"}, {"#1a7f4b", "#5fd39a"},
                               {"#8a2be2", "#c9a0ff"}, {"#a0224e", "#ff85ab"}, {"#6b5b00", "#dcc94f"}};
constexpr size_t kColourCount = std::size(kColours);
constexpr const char* kDashes[] = {"", "7 4", "2 3"};

struct Range {
  double low = 0;
  double high = 1;
};

bool finite(const PlotPoint& point) {
  return std::isfinite(point.x) && std::isfinite(point.y);
}

/// The range of one coordinate of all points, never empty.
Range range_of(const Plot& plot, double PlotPoint::*coordinate) {
  std::optional<Range> range;
  const auto include = [&](double value) {
    if (!range) range = Range{value, value};
    range->low = std::min(range->low, value);
    range->high = std::max(range->high, value);
  };
  for (const PlotSeries& series : plot.series) {
    for (const PlotPoint& point : series.points) {
      if (finite(point)) include(point.*coordinate);
    }
  }
  if (coordinate == &PlotPoint::y && plot.level) include(*plot.level);
  if (!range) return {};
  if (range->high <= range->low) {
    const double some = range->low == 0 ? 1.0 : 0.1 * std::abs(range->low);
    return {range->low - some, range->high + some};
  }
  return *range;
}

/// Where values of a coordinate lie on the page.
class Axis {
 public:
  Axis(Range range, double begin, double end, bool logarithmic)
      : low_(place(range.low, logarithmic)),
        high_(place(range.high, logarithmic)),
        begin_(begin),
        end_(end),
        logarithmic_(logarithmic) {}

  double at(double value) const {
    return begin_ + (end_ - begin_) * (place(value, logarithmic_) - low_) / (high_ - low_);
  }

 private:
  static double place(double value, bool logarithmic) { return logarithmic ? std::log2(value) : value; }

  double low_;
  double high_;
  double begin_;
  double end_;
  bool logarithmic_;
};

/// Whole numbers as such; otherwise all with as many decimals as one of them needs.
std::vector<std::string> tick_texts(const std::vector<double>& ticks) {
  constexpr int kMostDecimals = 6;
  int decimals = 0;
  for (const double tick : ticks) {
    const auto rounds = [&] {
      const double shifted = tick * std::pow(10.0, decimals);
      return std::abs(shifted - std::round(shifted)) > 1e-6 * std::max(1.0, std::abs(shifted));
    };
    while (decimals < kMostDecimals && rounds()) ++decimals;
  }
  std::vector<std::string> texts;
  for (const double tick : ticks) texts.push_back(fmt::format("{:.{}f}", tick, decimals));
  return texts;
}

std::vector<double> values_of_x(const Plot& plot) {
  std::vector<double> values;
  for (const PlotSeries& series : plot.series) {
    for (const PlotPoint& point : series.points) {
      if (finite(point)) values.push_back(point.x);
    }
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

/// A drawing in progress.
class Drawing {
 public:
  explicit Drawing(const Plot& plot) : plot_(plot) {
    Range x = range_of(plot, &PlotPoint::x);
    Range y = range_of(plot, &PlotPoint::y);
    const std::vector<double> values = values_of_x(plot);
    const bool logarithmic = plot.logarithmic_x && !values.empty() && values.front() > 0;
    if (!logarithmic) x_ticks_ = widen(x, std::nullopt, std::nullopt);
    if (logarithmic && values.size() == 1) x = {values.front() / 2, values.front() * 2};
    x_ = Axis(x, kLeft, kWidth - kRight, logarithmic);
    if (logarithmic) x_ticks_ = apart(values);
    y_ticks_ = widen(y, plot.lowest_y, plot.highest_y);
    y_ = Axis(y, kHeight - kBottom, kTop, false);
  }

  std::string draw() {
    open();
    axes();
    if (plot_.level) level();
    for (size_t i = 0; i < plot_.series.size(); ++i) curve(i);
    legend();
    return out_ + "</svg>\n";
  }

 private:
  /// Brings a range's ends out to round numbers, unless they are given; returns the ticks.
  static std::vector<double> widen(Range& range, std::optional<double> low, std::optional<double> high) {
    constexpr int kParts = 5;
    range = {low.value_or(range.low), high.value_or(range.high)};
    if (range.high <= range.low) range.high = range.low + 1;
    const std::vector<double> inside = round_ticks(range.low, range.high, kParts);
    if (inside.size() < 2) return inside;
    const double step = inside[1] - inside[0];
    if (!low && range.low < inside.front() - 1e-9 * step) range.low = inside.front() - step;
    if (!high && range.high > inside.back() + 1e-9 * step) range.high = inside.back() + step;
    return round_ticks(range.low, range.high, kParts + 2);
  }

  /// Those of the values whose numbers do not overlap below the axis.
  std::vector<double> apart(const std::vector<double>& values) const {
    std::vector<double> chosen;
    for (const double value : values) {
      if (chosen.empty() || x_.at(value) - x_.at(chosen.back()) >= kTickRoom) chosen.push_back(value);
    }
    return chosen;
  }

  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    out_ += fmt::format(format, std::forward<Args>(args)...);
  }

  void open() {
    size_t longest = plot_.level_name.size();
    for (const PlotSeries& series : plot_.series) longest = std::max(longest, series.name.size());
    const double width = kWidth + 44 + kCharacter * static_cast<double>(longest);
    put("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\" font-family=\"system-ui, sans-serif\" "
        "font-size=\"{2:.0f}\">\n<title>{3}</title>\n",
        width, kHeight, kFontSize, escape(plot_.title));
    style();
    put("<rect class=\"vp-ground\" width=\"{:.0f}\" height=\"{:.0f}\"/>\n", width, kHeight);
    put("<text class=\"vp-text\" x=\"{:.0f}\" y=\"26\" font-size=\"16\" font-weight=\"600\">{}</text>\n",
        kLeft, escape(plot_.title));
    put("<text class=\"vp-soft\" x=\"{:.0f}\" y=\"46\">{}</text>\n", kLeft, escape(plot_.subtitle));
  }

  void style() {
    const auto colours = [this](bool dark) {
      put("  .vp-ground {{ fill: {} }} .vp-text {{ fill: {} }} .vp-soft {{ fill: {} }}\n",
          dark ? "#15181c" : "#ffffff", dark ? "#e8eaed" : "#1c1e21", dark ? "#a7adb5" : "#555b63");
      put("  .vp-grid {{ stroke: {} }} .vp-axis {{ stroke: {} }} .vp-level {{ stroke: {} }}\n",
          dark ? "#33383f" : "#e1e4e8", dark ? "#8a9099" : "#6b7178", dark ? "#a7adb5" : "#555b63");
      for (size_t i = 0; i < kColourCount; ++i) {
        const char* const colour = dark ? kColours[i].on_dark : kColours[i].on_light;
        put("  .vp-line{0} {{ stroke: {1}; fill: none }} .vp-mark{0} {{ fill: {1} }}\n", i, colour);
      }
    };
    put("<style>\n");
    colours(false);
    put("  @media (prefers-color-scheme: dark) {{\n");
    colours(true);
    put("  }}\n</style>\n");
  }

  void axes() {
    const double bottom = kHeight - kBottom;
    const double right = kWidth - kRight;
    const std::vector<std::string> y_texts = tick_texts(y_ticks_);
    for (size_t i = 0; i < y_ticks_.size(); ++i) {
      const double y = y_.at(y_ticks_[i]);
      put("<path class=\"vp-grid\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", kLeft, y, right);
      put("<text class=\"vp-soft\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft - 8,
          y + 4.5, y_texts[i]);
    }
    const std::vector<std::string> x_texts = tick_texts(x_ticks_);
    for (size_t i = 0; i < x_ticks_.size(); ++i) {
      const double x = x_.at(x_ticks_[i]);
      put("<path class=\"vp-axis\" d=\"M{:.1f} {:.1f}v5\"/>\n", x, bottom);
      put("<text class=\"vp-soft\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", x,
          bottom + 20, x_texts[i]);
    }
    put("<path class=\"vp-axis\" d=\"M{0:.1f} {1:.1f}V{2:.1f}H{3:.1f}\" fill=\"none\"/>\n", kLeft, kTop,
        bottom, right);
    put("<text class=\"vp-text\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
        (kLeft + right) / 2, kHeight - 16, escape(plot_.x_label));
    put("<text class=\"vp-text\" transform=\"translate(20 {:.1f}) rotate(-90)\" "
        "text-anchor=\"middle\">{}</text>\n",
        (kTop + bottom) / 2, escape(plot_.y_label));
  }

  void level() {
    put("<path class=\"vp-level\" stroke-dasharray=\"4 4\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", kLeft,
        y_.at(*plot_.level), kWidth - kRight);
  }

  void curve(size_t index) {
    std::string path;
    for (const PlotPoint& point : plot_.series[index].points) {
      if (finite(point))
        path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? 'M' : 'L', x_.at(point.x), y_.at(point.y));
    }
    if (path.empty()) return;
    line(index, path);
    for (const PlotPoint& point : plot_.series[index].points) {
      if (!finite(point)) continue;
      mark(index, x_.at(point.x), y_.at(point.y),
           fmt::format("{}: {:.4g}, {:.4g}", plot_.series[index].name, point.x, point.y));
    }
  }

  void line(size_t index, const std::string& path) {
    const char* const dashes = kDashes[index / kColourCount % std::size(kDashes)];
    put("<path class=\"vp-line{}\" stroke-width=\"2\" stroke-linejoin=\"round\"{} d=\"{}\"/>\n",
        index % kColourCount, *dashes == '\0' ? "" : fmt::format(" stroke-dasharray=\"{}\"", dashes), path);
  }

  /// A disc, square, triangle, diamond or cross; `hint` is what browsers show below the pointer.
  void mark(size_t index, double x, double y, const std::string& hint) {
    constexpr const char* kShapes[] = {"m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "m-3.6-3.6h7.2v7.2h-7.2z",
                                       "m0-4.6l4.5 7.8h-9z", "m0-5l5 5l-5 5l-5-5z",
                                       "m-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z"};
    put("<path class=\"vp-mark{}\" d=\"M{:.1f} {:.1f}{}\">", index % kColourCount, x, y,
        kShapes[index % std::size(kShapes)]);
    put("<title>{}</title></path>\n", escape(hint));
  }

  void legend() {
    const double left = kWidth;
    double y = kTop + 6;
    const auto entry = [&](const std::string& name) {
      put("<text class=\"vp-text\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", left + 34, y + 4.5, escape(name));
      y += 22;
    };
    for (size_t i = 0; i < plot_.series.size(); ++i) {
      line(i, fmt::format("M{:.1f} {:.1f}h26", left, y));
      mark(i, left + 13, y, plot_.series[i].name);
      entry(plot_.series[i].name);
    }
    if (!plot_.level || plot_.level_name.empty()) return;
    put("<path class=\"vp-level\" stroke-dasharray=\"4 4\" d=\"M{:.1f} {:.1f}h26\"/>\n", left, y);
    entry(plot_.level_name);
  }

  const Plot& plot_;
  std::vector<double> x_ticks_;
  std::vector<double> y_ticks_;
  Axis x_{{}, 0, 1, false};
  Axis y_{{}, 0, 1, false};
  std::string out_;
};

}  // namespace

std::string svg(const Plot& plot) {
  return Drawing(plot).draw();
}

std::string escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
    }
  }
  return escaped;
}

std::vector<double> round_ticks(double low, double high, int count) {
  const double rough = (high - low) / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough * (1 - 1e-9)) step = factor * power;
  }
  std::vector<double> ticks;
  const double first = std::ceil(low / step - 1e-9);
  for (double i = first; i * step <= high + 1e-9 * step; ++i) ticks.push_back(i == 0 ? 0.0 : i * step);
  return ticks;
}

}  // namespace verbatim::accelerator
