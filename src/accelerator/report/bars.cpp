#include "accelerator/report/bars.h"

#include <fmt/format.h>

#include <algorithm>

#include "accelerator/report/plot.h"

namespace verbatim::accelerator {

namespace {

constexpr double kBarLeft = 60;
constexpr double kBarTop = 52;
constexpr double kBarHeight = 240;
constexpr double kBarWidth = 26;
constexpr double kGroupGap = 26;
constexpr double kPageWidth = 760;

constexpr const char* kBarStyle =
    "<style>.vb-text{fill:#1c1e21}.vb-soft{fill:#555b63}.vb-grid{stroke:#e1e4e8}"
    ".vb0{fill:#0060a8}.vb1{fill:#c24a00}.vb2{fill:#1a7f4b}"
    "@media (prefers-color-scheme:dark){.vb-text{fill:#e8eaed}.vb-soft{fill:#a7adb5}.vb-grid{stroke:#33383f}"
    ".vb0{fill:#6ab7f5}.vb1{fill:#ff9a57}.vb2{fill:#5fd39a}}</style>\n";

std::string opened(double width, double height, const std::string& title) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\" role=\"img\" font-family=\"system-ui, sans-serif\" "
      "font-size=\"12\">\n<title>{2}</title>\n{3}"
      "<text class=\"vb-text\" x=\"8\" y=\"20\" font-size=\"15\" font-weight=\"600\">{2}</text>\n",
      width, height, escape(title), kBarStyle);
}

}  // namespace

std::string svg(const Bars& bars) {
  double highest = 0;
  for (const Bars::Group& group : bars.groups) {
    for (const double value : group.values) highest = std::max(highest, value);
  }
  if (!(highest > 0)) return "";
  const auto series = static_cast<double>(bars.series.size());
  const double step = series * kBarWidth + kGroupGap;
  const double width =
      std::max(kBarLeft + step * static_cast<double>(bars.groups.size()) + 20, kBarLeft + 150 * series);
  const double bottom = kBarTop + kBarHeight;
  const auto y_of = [&](double value) { return bottom - kBarHeight * value / (1.08 * highest); };
  std::string text = opened(width, bottom + 40, bars.title);
  for (size_t i = 0; i < bars.series.size(); ++i) {
    const double x = kBarLeft + 150 * static_cast<double>(i);
    text += fmt::format(
        "<rect class=\"vb{}\" x=\"{:.0f}\" y=\"30\" width=\"12\" height=\"12\"/><text class=\"vb-text\" "
        "x=\"{:.0f}\" "
        "y=\"40\">{}</text>\n",
        i % 3, x, x + 18, escape(bars.series[i]));
  }
  for (const double tick : round_ticks(0, highest, 5)) {
    text += fmt::format(
        "<path class=\"vb-grid\" d=\"M{:.0f} {:.1f}H{:.0f}\"/><text class=\"vb-soft\" x=\"{:.0f}\" "
        "y=\"{:.1f}\" "
        "text-anchor=\"end\">{:g}</text>\n",
        kBarLeft, y_of(tick), width - 10, kBarLeft - 6, y_of(tick) + 4, tick);
  }
  for (size_t g = 0; g < bars.groups.size(); ++g) {
    const double left = kBarLeft + kGroupGap / 2 + step * static_cast<double>(g);
    for (size_t i = 0; i < bars.groups[g].values.size(); ++i) {
      const double value = bars.groups[g].values[i];
      if (!(value > 0)) continue;
      const double x = left + kBarWidth * static_cast<double>(i);
      text += fmt::format(
          "<rect class=\"vb{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.1f}\"/><text "
          "class=\"vb-text\" font-size=\"10\" x=\"{:.1f}\" y=\"{:.1f}\" "
          "text-anchor=\"middle\">{:.2f}</text>\n",
          i % 3, x, y_of(value), kBarWidth - 3, bottom - y_of(value), x + kBarWidth / 2 - 1, y_of(value) - 3,
          value);
    }
    text +=
        fmt::format("<text class=\"vb-text\" x=\"{:.1f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>\n",
                    left + series * kBarWidth / 2, bottom + 18, escape(bars.groups[g].name));
  }
  text += fmt::format(
      "<text class=\"vb-soft\" transform=\"translate(14 {:.0f}) rotate(-90)\" "
      "text-anchor=\"middle\">{}</text>\n",
      kBarTop + kBarHeight / 2, escape(bars.y_label));
  return text + "</svg>\n";
}

std::string timeline(const std::string& title, const std::vector<BlockTimes>& times) {
  int64_t end = 1;
  for (const BlockTimes& one : times) end = std::max({end, one.array_end, one.sfu_end});
  const double scale = (kPageWidth - kBarLeft - 20) / static_cast<double>(end);
  std::string text = opened(kPageWidth, 150, title);
  constexpr const char* kRows[] = {"memory", "array", "SFU"};
  for (int row = 0; row < 3; ++row) {
    const double y = 36 + 30 * row;
    text += fmt::format("<text class=\"vb-text\" x=\"8\" y=\"{:.0f}\">{}</text>\n", y + 14, kRows[row]);
    for (size_t i = 0; i < times.size(); ++i) {
      const BlockTimes& one = times[i];
      const int64_t begins[] = {one.load_begin, one.array_begin, one.sfu_begin};
      const int64_t ends[] = {one.load_end, one.array_end, one.sfu_end};
      if (ends[row] <= begins[row]) continue;
      text += fmt::format(
          "<rect class=\"vb{}\" opacity=\"{}\" x=\"{:.2f}\" y=\"{:.0f}\" width=\"{:.2f}\" "
          "height=\"18\"><title>block "
          "{}: {:.3f} to {:.3f} us</title></rect>\n",
          row, i % 2 == 0 ? "1" : "0.65", kBarLeft + scale * static_cast<double>(begins[row]), y,
          std::max(scale * static_cast<double>(ends[row] - begins[row]), 0.4), i + 1,
          static_cast<double>(begins[row]) * 1e-6, static_cast<double>(ends[row]) * 1e-6);
    }
  }
  text += fmt::format(
      "<text class=\"vb-soft\" x=\"{:.0f}\" y=\"140\">0</text><text class=\"vb-soft\" x=\"{:.0f}\" y=\"140\" "
      "text-anchor=\"end\">{:.1f} us</text>\n",
      kBarLeft, kPageWidth - 20, static_cast<double>(end) * 1e-6);
  return text + "</svg>\n";
}

}  // namespace verbatim::accelerator
