#include "accelerator/paper/surface.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "accelerator/fail.h"
#include "accelerator/parameters/built_in.h"

namespace verbatim::accelerator {

namespace {

using Json = nlohmann::json;

constexpr int64_t kMostCount = int64_t{1} << 22;

double number(const Json& record, const char* name, double least, double most, const std::string& where) {
  const auto found = record.find(name);
  if (found == record.end() || !found->is_number()) bad_input("{}: \"{}\" must be a number", where, name);
  const auto value = found->get<double>();
  if (!(value >= least && value <= most)) {
    bad_input("{}: \"{}\" must be from {} to {}", where, name, least, most);
  }
  return value;
}

int64_t count(const Json& record, const char* name, int64_t least, const std::string& where) {
  const double value =
      number(record, name, static_cast<double>(least), static_cast<double>(kMostCount), where);
  if (value != static_cast<double>(static_cast<int64_t>(value))) {
    bad_input("{}: \"{}\" must be a whole number", where, name);
  }
  return static_cast<int64_t>(value);
}

/// The time of a decoding in ps.
double time_of(PassRunner& runner, const Hardware& hardware, const Dram& dram, const Steps& steps) {
  return static_cast<double>(decode(runner, hardware, dram, steps).time);
}

}  // namespace

ThresholdMeasurement parse_thresholds(std::string_view json, const std::string& where) {
  const Json whole = Json::parse(json, nullptr, false);
  if (!whole.is_object() || !whole.contains("values") || !whole["values"].is_array()) {
    bad_input("{}: has no values; scripts/measure draft-thresholds writes it", where);
  }
  ThresholdMeasurement measurement;
  if (whole.contains("conditions") && whole["conditions"].is_string()) {
    measurement.conditions = whole["conditions"].get<std::string>();
  }
  for (const Json& record : whole["values"]) {
    if (!record.is_object()) bad_input("{}: a value is no object", where);
    const MeasuredDrafting one{.length = count(record, "length", 1, where),
                               .threshold = number(record, "threshold", 0, 1, where),
                               .prompts = count(record, "prompts", 1, where),
                               .prompt_tokens = count(record, "prompt_tokens", 1, where),
                               .steps = count(record, "steps", 1, where),
                               .drafted = count(record, "drafted", 0, where),
                               .accepted = count(record, "accepted", 0, where),
                               .draft_passes = count(record, "draft_passes", 0, where)};
    if (one.accepted > one.drafted) {
      bad_input("{}: accepted {} of {} drafted tokens", where, one.accepted, one.drafted);
    }
    measurement.drafting.push_back(one);
  }
  return measurement;
}

const ThresholdMeasurement& measured_thresholds() {
  static const ThresholdMeasurement measurement =
      parse_thresholds(built_in_thresholds(), "docs/results/simulated-clock/draft-thresholds.json");
  return measurement;
}

Surface surface_of(const Hardware& hardware, const Dram& dram, const Shape& shape,
                   const ThresholdMeasurement& measurement) {
  Surface surface{.model = shape.name, .conditions = measurement.conditions, .points = {}};
  const Hardware baseline = load_hardware("fp16");
  PassRunner runner(hardware, service_of(dram), shape);
  PassRunner plain(baseline, service_of(dram), shape);
  std::map<std::pair<int64_t, int64_t>, double> plain_times;  // by the prompt's tokens and those that follow
  for (const MeasuredDrafting& one : measurement.drafting) {
    const Steps steps = spread_steps({.prompt_tokens = one.prompt_tokens / one.prompts,
                                      .steps = one.steps,
                                      .drafted = one.drafted,
                                      .accepted = one.accepted,
                                      .draft_passes = one.draft_passes});
    const double ours = time_of(runner, hardware, dram, steps);
    const auto [found, absent] = plain_times.try_emplace({steps.prompt_tokens, steps.tokens()}, 0.0);
    if (absent) found->second = time_of(plain, baseline, dram, plain_steps(steps));
    const double theirs = found->second;
    surface.points.push_back(
        {.length = one.length,
         .threshold = one.threshold,
         .acceptance =
             one.drafted > 0 ? static_cast<double>(one.accepted) / static_cast<double>(one.drafted) : 0,
         .tokens_per_step = static_cast<double>(one.accepted + one.steps) / static_cast<double>(one.steps),
         .speedup = theirs / ours});
  }
  return surface;
}

std::vector<Surface> figure_nine_surfaces(const Hardware& hardware, const Dram& dram) {
  std::vector<Surface> surfaces;
  for (const char* const model : {"llama3.1-8b", "vicuna-7b"}) {
    surfaces.push_back(surface_of(hardware, dram, load_shape(model)));
  }
  return surfaces;
}

std::string text_of(const Surface& surface) {
  std::vector<int64_t> lengths;
  std::vector<double> thresholds;
  for (const SurfacePoint& point : surface.points) {
    if (std::count(lengths.begin(), lengths.end(), point.length) == 0) lengths.push_back(point.length);
    if (std::count(thresholds.begin(), thresholds.end(), point.threshold) == 0) {
      thresholds.push_back(point.threshold);
    }
  }
  std::string text =
      fmt::format("Figure 9, {}: speedup by threshold and length of drafts\n  threshold", surface.model);
  for (const int64_t length : lengths) text += fmt::format(" {:>6}", length);
  text += "\n";
  for (const double threshold : thresholds) {
    text += fmt::format("  {:>9.1f}", threshold);
    for (const int64_t length : lengths) {
      const auto point = std::find_if(
          surface.points.begin(), surface.points.end(),
          [&](const SurfacePoint& one) { return one.length == length && one.threshold == threshold; });
      text += point == surface.points.end() ? fmt::format(" {:>6}", "-")
                                            : fmt::format(" {:>6.2f}", point->speedup);
    }
    text += "\n";
  }
  return text;
}

}  // namespace verbatim::accelerator
