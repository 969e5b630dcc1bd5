#include "bench/sweep_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace verbatim::bench {

namespace {

using Points = std::vector<SweepPoint>;
using Value = std::function<double(const SweepPoint&)>;

double length_of(const SweepPoint& point) {
  return point.length;
}
double threshold_of(const SweepPoint& point) {
  return static_cast<double>(point.threshold);
}
double rollback_of(const SweepPoint& point) {
  return static_cast<double>(point.rollback);
}
double speedup_of(const SweepPoint& point) {
  return point.result.speedup;
}
double acceptance_of(const SweepPoint& point) {
  return point.result.total.acceptance_rate();
}

/// The values that there are, in increasing order.
std::vector<double> values_of(const Points& points, const Value& value) {
  std::vector<double> values;
  for (const SweepPoint& point : points) values.push_back(value(point));
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

/// A curve for each value of `parameter`, through its points in the order of `along`.
std::vector<PlotSeries> curves(Points points, const Value& parameter, const char* name, const Value& along,
                               const Value& x, const Value& y) {
  std::stable_sort(points.begin(), points.end(),
                   [&](const SweepPoint& a, const SweepPoint& b) { return along(a) < along(b); });
  std::vector<PlotSeries> series;
  for (const double value : values_of(points, parameter)) {
    PlotSeries& curve = series.emplace_back();
    curve.name = fmt::format("{} {:g}", name, static_cast<float>(value));
    for (const SweepPoint& point : points) {
      if (parameter(point) == value) curve.points.push_back({x(point), y(point)});
    }
  }
  return series;
}

/// What is drawn against a setting of the stop rule.
struct Quantity {
  const char* file;
  const char* title;
  const char* label;
  Value value;
  bool share;     ///< from 0 to 1
  bool to_plain;  ///< 1 is plain decoding
};

struct Setting {
  const char* file;
  const char* title;
  const char* label;
  Value value;
  bool logarithmic;
};

SweepFigure figure(const Recipe& recipe, const std::string& subtitle, const Points& points,
                   const Quantity& quantity, const Setting& setting, const Setting& parameter) {
  Plot plot{.title = fmt::format("{} against {}: {}", quantity.title, setting.title, recipe.name),
            .subtitle = subtitle,
            .x_label = setting.label,
            .y_label = quantity.label,
            .logarithmic_x = setting.logarithmic,
            .level_name = {},
            .series = curves(points, parameter.value, parameter.title, setting.value, setting.value,
                             quantity.value)};
  if (quantity.share) {
    plot.lowest_y = 0.0;
    plot.highest_y = 1.0;
  }
  if (quantity.to_plain) {
    plot.level = 1.0;
    plot.level_name = "plain";
  }
  return {.file = fmt::format("{}-by-{}.svg", quantity.file, setting.file), .plot = std::move(plot)};
}

/// Of a lossy recipe: `quality` of its text against how fast it comes.
SweepFigure quality_figure(const Recipe& recipe, const std::string& subtitle, const Points& points,
                           const Quantity& quality, double of_plain) {
  Plot plot{.title = fmt::format("{} against speedup: {}", quality.title, recipe.name),
            .subtitle = subtitle,
            .x_label = "speedup over plain",
            .y_label = quality.label,
            .level_name = {},
            .series = {}};
  for (const double length : values_of(points, length_of)) {
    Points some;
    for (const SweepPoint& point : points) {
      if (length_of(point) == length) some.push_back(point);
    }
    for (PlotSeries& curve : curves(some, rollback_of, "rollback", threshold_of, speedup_of, quality.value)) {
      if (values_of(points, length_of).size() > 1) curve.name += fmt::format(", length {:g}", length);
      plot.series.push_back(std::move(curve));
    }
  }
  plot.series.push_back({.name = "plain", .points = {{1.0, of_plain}}});
  return {.file = fmt::format("{}-by-speedup.svg", quality.file), .plot = std::move(plot)};
}

}  // namespace

std::vector<SweepFigure> sweep_figures(const Recipe& recipe, const std::string& subtitle,
                                       const std::vector<SweepPoint>& points,
                                       const app::DecodeResult& plain) {
  const Quantity quantities[] = {
      {"acceptance", "Acceptance rate", "accepted share of drafts", acceptance_of, true, false},
      {"speedup", "Speedup", "speedup over plain", speedup_of, false, true}};
  const Setting length = {"length", "length", "draft length, at most", length_of, true};
  const Setting threshold = {"threshold", "threshold", "threshold of the draft's probability", threshold_of,
                             false};
  const bool bild = recipe.acceptance == Recipe::Acceptance::kBild;
  const std::vector<double> rollbacks = values_of(points, rollback_of);
  Points shown;
  for (const SweepPoint& point : points) {
    if (rollback_of(point) == rollbacks.front()) shown.push_back(point);
  }
  const std::string note = bild ? fmt::format("{}; rollback {:g}", subtitle, rollbacks.front()) : subtitle;
  std::vector<SweepFigure> figures;
  for (const Quantity& quantity : quantities) {
    if (values_of(points, length_of).size() > 1) {
      figures.push_back(figure(recipe, note, shown, quantity, length, threshold));
    }
    if (values_of(points, threshold_of).size() > 1) {
      figures.push_back(figure(recipe, note, shown, quantity, threshold, length));
    }
  }
  if (recipe.lossless()) return figures;
  figures.push_back(
      quality_figure(recipe, subtitle, points,
                     {"agreement", "Agreement with plain", "share of tokens that are plain's",
                      [](const SweepPoint& point) { return point.result.agreement; }, true, false},
                     1.0));
  figures.push_back(
      quality_figure(recipe, subtitle, points,
                     {"perplexity", "Perplexity of the text", "perplexity under the model's own weights",
                      [](const SweepPoint& point) { return point.result.perplexity; }, false, false},
                     plain.perplexity));
  return figures;
}

}  // namespace verbatim::bench
