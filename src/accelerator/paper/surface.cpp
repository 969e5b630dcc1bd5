#include "accelerator/paper/surface.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "accelerator/fail.h"
#include "accelerator/parameters/built_in.h"

namespace verbatim::accelerator {

namespace {

using Json = nlohmann::json;

constexpr int64_t kMostTokens = int64_t{1} << 20;
constexpr int64_t kMostDrafted = 4095;

double number(const Json& record, const char* name, double least, double most, const std::string& where) {
  const auto found = record.find(name);
  if (found == record.end() || !found->is_number()) bad_input("{}: \"{}\" must be a number", where, name);
  const auto value = found->get<double>();
  if (!(value >= least && value <= most)) {
    bad_input("{}: \"{}\" must be from {} to {}", where, name, least, most);
  }
  return value;
}

int64_t count(const Json& number, int64_t most, const std::string& where) {
  if (!number.is_number_integer() || number < 0 || number > most) {
    bad_input("{}: a count must be a whole number from 0 to {}", where, most);
  }
  return number.get<int64_t>();
}

/// A trace as the file has it: the prompt's tokens and of each step what was drafted, accepted, and the
/// passes.
Steps trace_of(const Json& trace, const std::string& where) {
  if (!trace.is_object() || !trace.contains("prompt_tokens") || !trace.contains("steps") ||
      !trace["steps"].is_array()) {
    bad_input("{}: a trace has \"prompt_tokens\" and \"steps\"", where);
  }
  Steps steps{.prompt_tokens = count(trace["prompt_tokens"], kMostTokens, where), .steps = {}};
  int64_t position = steps.prompt_tokens + 1;
  for (const Json& step : trace["steps"]) {
    if (!step.is_array() || step.size() != 3) bad_input("{}: a step has three counts", where);
    const Step one{.position = position,
                   .drafted = count(step[0], kMostDrafted, where),
                   .accepted = count(step[1], kMostDrafted, where),
                   .draft_passes = count(step[2], kMostTokens, where),
                   .rows = count(step[0], kMostDrafted, where) + 1};
    if (one.accepted > one.drafted) {
      bad_input("{}: accepted {} of {} drafted tokens", where, one.accepted, one.drafted);
    }
    steps.steps.push_back(one);
    position += one.accepted + 1;
  }
  if (steps.steps.empty()) bad_input("{}: a trace has no steps", where);
  return steps;
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
    MeasuredDrafting one{.length = static_cast<int64_t>(number(record, "length", 1, kMostDrafted, where)),
                         .threshold = number(record, "threshold", 0, 1, where),
                         .traces = {}};
    const auto traces = record.find("traces");
    if (traces == record.end() || !traces->is_array() || traces->empty()) {
      bad_input("{}: \"traces\" must be a list", where);
    }
    for (const Json& trace : *traces) one.traces.push_back(trace_of(trace, where));
    measurement.drafting.push_back(std::move(one));
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
    SurfacePoint point{.length = one.length, .threshold = one.threshold};
    int64_t drafted = 0;
    int64_t accepted = 0;
    int64_t steps_taken = 0;
    double ours = 0;
    double theirs = 0;
    for (const Steps& steps : one.traces) {
      const auto [found, absent] = plain_times.try_emplace({steps.prompt_tokens, steps.tokens()}, 0.0);
      if (absent) found->second = time_of(plain, baseline, dram, plain_steps(steps));
      theirs += found->second;
      ours += time_of(runner, hardware, dram, steps);
      drafted += steps.drafted();
      accepted += steps.accepted();
      steps_taken += static_cast<int64_t>(steps.steps.size());
    }
    if (drafted > 0) point.acceptance = static_cast<double>(accepted) / static_cast<double>(drafted);
    point.tokens_per_step = static_cast<double>(accepted + steps_taken) / static_cast<double>(steps_taken);
    point.speedup = theirs / ours;
    surface.points.push_back(point);
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

SurfaceTable table_of(const Surface& surface) {
  const auto place = [](auto& names, auto name) {
    const auto found = std::find(names.begin(), names.end(), name);
    const auto at = static_cast<size_t>(found - names.begin());
    if (found == names.end()) names.push_back(name);
    return at;
  };
  SurfaceTable table;
  for (const SurfacePoint& point : surface.points) {
    const size_t column = place(table.lengths, point.length);
    const size_t row = place(table.thresholds, point.threshold);
    table.values.resize(table.thresholds.size());
    for (std::vector<double>& values : table.values) values.resize(table.lengths.size(), NAN);
    table.values[row][column] = point.speedup;
  }
  return table;
}

std::string text_of(const Surface& surface) {
  const SurfaceTable table = table_of(surface);
  std::string text =
      fmt::format("Figure 9, {}: speedup by threshold and length of drafts\n  threshold", surface.model);
  for (const int64_t length : table.lengths) text += fmt::format(" {:>6}", length);
  text += "\n";
  for (size_t row = 0; row < table.values.size(); ++row) {
    text += fmt::format("  {:>9.1f}", table.thresholds[row]);
    for (const double value : table.values[row]) {
      text += std::isnan(value) ? fmt::format(" {:>6}", "-") : fmt::format(" {:>6.2f}", value);
    }
    text += "\n";
  }
  return text;
}

}  // namespace verbatim::accelerator
