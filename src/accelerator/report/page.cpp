#include "accelerator/report/page.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "accelerator/cycles/pass.h"
#include "accelerator/cycles/product.h"
#include "accelerator/paper/equations.h"
#include "accelerator/report/bars.h"
#include "accelerator/report/heat_map.h"
#include "accelerator/report/plot.h"

namespace verbatim::accelerator {

namespace {

constexpr const char* kPageStyle =
    "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:62rem;padding:0 1rem;color:#222;"
    "background:#fff}h1{font-size:1.3rem}h2{font-size:1.05rem;margin-top:1.8rem}svg{max-width:100%;height:"
    "auto}"
    "table{border-collapse:collapse}td,th{border-bottom:1px solid #ddd;padding:.25rem .6rem;text-align:right}"
    "td:first-child,th:first-child{text-align:left}.note{color:#555}"
    "@media (prefers-color-scheme:dark){body{color:#e8eaed;background:#15181c}td,th{border-color:#33383f}"
    ".note{color:#a7adb5}}";

std::string row_of(const std::vector<std::string>& cells, const char* kind) {
  std::string row = "<tr>";
  for (const std::string& cell : cells) row += fmt::format("<{0}>{1}</{0}>", kind, escape(cell));
  return row + "</tr>\n";
}
std::string header(const std::vector<std::string>& cells) {
  return "<table>" + row_of(cells, "th");
}
std::string line(const std::vector<std::string>& cells) {
  return row_of(cells, "td");
}
std::string note(const std::string& text) {
  return "<p class=\"note\">" + escape(text) + "</p>\n";
}
std::string heading(const std::string& text) {
  return "<h2>" + escape(text) + "</h2>\n";
}

std::string joules(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f}", *value) : std::string("not known");
}

std::string summary_of(const Simulation& simulation) {
  std::string html = header({"machine", "memory", "seconds", "tokens/s", "cycles", "read", "memory busy",
                             "array busy", "memory, J", "chip, J"});
  for (const SimulatedDecoding* one : {&simulation.decoding, &simulation.baseline}) {
    html +=
        line({one->machine, one->memory, fmt::format("{:.4f}", one->seconds),
              fmt::format("{:.2f}", static_cast<double>(one->tokens) / one->seconds),
              fmt::format("{}", one->cycles),
              fmt::format("{:.2f} GB", static_cast<double>(one->bytes_read) * 1e-9),
              fmt::format("{:.1f} %", 100 * one->memory_busy), fmt::format("{:.1f} %", 100 * one->array_busy),
              joules(one->dram_joules), joules(one->chip_joules)});
  }
  return html + "</table>\n" +
         note(fmt::format(
             "{} steps, {} of {} drafted tokens accepted; speedup {:.3f}, Td/Tar {:.3f}, Tv/Tar {:.3f}. The "
             "chip's energy is the power of the paper's table IV times the time.",
             simulation.steps, simulation.accepted, simulation.drafted, simulation.speedup,
             simulation.draft_time, simulation.verify_time));
}

/// Where the energy of the decoding goes.
std::string energy_of(const Simulation& simulation) {
  Bars bars{.title = "Energy per token",
            .y_label = "millijoules",
            .series = {"memory", "chip, by table IV"},
            .groups = {}};
  for (const SimulatedDecoding* one : {&simulation.decoding, &simulation.baseline}) {
    const double scale = 1e3 / static_cast<double>(one->tokens);
    bars.groups.push_back(
        {one->machine, {one->dram_joules.value_or(0) * scale, one->chip_joules.value_or(0) * scale}});
  }
  return svg(bars) + note("A bar that is missing is not known.");
}

std::string table_three(const Comparison& comparison) {
  Bars bars{.title = "Speedup over FP16 (tables II and III)",
            .y_label = "times",
            .series = {"paper", "simulated"},
            .groups = {}};
  std::string html =
      header({"model", "task", "L", "r", "paper", "simulated", "deviation", "Td/Tar", "Tv/Tar", "fitted"});
  for (const ComparedCell& cell : comparison.cells) {
    const Claim& claim = cell.claim;
    html += line({std::string(claim.model), std::string(claim.task),
                  fmt::format("{:.2f}", claim.draft_length), fmt::format("{:.3f}", claim.acceptance),
                  fmt::format("{:.2f}", claim.speedup), fmt::format("{:.2f}", cell.simulated),
                  fmt::format("{:+.1f} %", 100 * (cell.simulated / claim.speedup - 1)),
                  fmt::format("{:.3f}", cell.draft_time), fmt::format("{:.3f}", cell.verify_time),
                  fmt::format("{:.2f}", cell.fitted)});
  }
  std::map<std::string, std::pair<double, double>> means;
  std::vector<std::string> order;
  for (const ComparedCell& cell : comparison.cells) {
    const std::string model(cell.claim.model);
    if (means.count(model) == 0) order.push_back(model);
    means[model].first += cell.claim.speedup / 3;
    means[model].second += cell.simulated / 3;
  }
  for (const std::string& model : order)
    bars.groups.push_back({model, {means[model].first, means[model].second}});
  return svg(bars) + html + "</table>\n" +
         note(fmt::format(
             "Simulated: {} with {}, L and r of table II, {} tokens after prompts of {}, nothing fitted. "
             "Fitted: equation 2 with Tv = Tar and Td/Tar = {}, which describes no machine.",
             comparison.machine, comparison.memory, kClaimedTokens, comparison.prompt_tokens,
             kFittedDraftTime));
}

std::string figures_seven_and_eight(const Comparison& comparison) {
  Bars speed{.title = "Speedup over other machines (figure 7)",
             .y_label = "times",
             .series = {"paper", "simulated"},
             .groups = {}};
  Bars energy{.title = "Energy efficiency over other machines (figure 8)",
              .y_label = "times",
              .series = {"paper", "memory alone", "chip alone"},
              .groups = {}};
  for (const ComparedGain& one : comparison.gains) {
    const std::string name(one.claim.machine);
    speed.groups.push_back({name, {one.claim.speedup, one.speedup}});
    energy.groups.push_back(
        {name, {one.claim.energy, one.dram_energy.value_or(0), one.chip_energy.value_or(0)}});
  }
  return svg(speed) +
         note(
             "The paper prints about 1 over 4-bit Olive and no number. All machines have the same array and "
             "memory.") +
         svg(energy) +
         note("Chip alone: had the other chip the power of SPEQ's full mode, which the paper does not say.");
}

std::string map_of(const Comparison& comparison) {
  Plot plot{.title = "Where table III could come from",
            .subtitle = fmt::format("{}, {} rows verified; bandwidth grows along each curve",
                                    comparison.map_model, comparison.map_rows),
            .x_label = "Td/Tar",
            .y_label = "Tv/Tar",
            .level_name = {},
            .series = {}};
  for (const MapPoint& point : comparison.map) {
    if (plot.series.empty() || plot.series.back().name != point.mapping) {
      plot.series.push_back({.name = point.mapping, .points = {}});
    }
    plot.series.back().points.push_back({point.draft_time, point.verify_time});
  }
  plot.series.push_back({.name = "table III (fitted)", .points = {{kFittedDraftTime, 1}}});
  const MapPoint& near = comparison.nearest;
  return svg(plot) + note(fmt::format("Nearest: {}, {:.1f} GB/s, ({:.3f}, {:.3f}).", near.mapping,
                                      near.gigabytes_per_second, near.draft_time, near.verify_time));
}

/// Figure 9: what the length of drafts and the threshold do, with acceptance that was measured.
std::string figure_nine(const std::vector<Surface>& surfaces) {
  std::string html;
  for (const Surface& surface : surfaces) {
    SurfaceTable table = table_of(surface);
    HeatMap map{
        .title = fmt::format("Speedup over FP16 by length and threshold (figure 9), {}", surface.model),
        .subtitle = "its shape and times; acceptance measured with another, small model",
        .x_label = "the most tokens of a draft",
        .y_label = "threshold",
        .columns = {},
        .rows = {},
        .values = std::move(table.values)};
    for (const int64_t length : table.lengths) map.columns.push_back(fmt::format("{}", length));
    for (const double threshold : table.thresholds) map.rows.push_back(fmt::format("{:.1f}", threshold));
    html += svg(map);
  }
  if (surfaces.empty()) return html;
  std::string conditions = surfaces.front().conditions;
  std::erase(conditions, '`');
  return html + note("The paper prints no numbers here. " + conditions);
}

/// What the length of drafts does, with the simulated times of passes and the paper's acceptance.
std::string lengths_alone(const Comparison& comparison) {
  Plot plot{.title = "Speedup by draft length, with the paper's acceptance",
            .subtitle = "MT-bench: equation 2 with simulated times of passes and r of table II",
            .x_label = "draft length",
            .y_label = "speedup",
            .level_name = {},
            .series = {}};
  for (const ComparedCell& cell : comparison.cells) {
    const bool shown = cell.claim.model == "llama3.1-8b" || cell.claim.model == "vicuna-7b";
    if (!shown || cell.claim.task != "MT-bench") continue;
    PlotSeries& series =
        plot.series.emplace_back(PlotSeries{.name = std::string(cell.claim.model), .points = {}});
    for (int length = 4; length <= 20; ++length) {
      series.points.push_back({static_cast<double>(length),
                               speedup(length, cell.claim.acceptance, cell.draft_time, cell.verify_time)});
    }
  }
  return svg(plot) +
         note("The paper has r for one threshold and one length; here it is the same for all lengths.");
}

/// The work of passes against the roof, by their rows.
std::string roofline_of(const Hardware& hardware, const Dram& dram, const Shape& shape, int64_t context) {
  Plot plot{.title = "Roofline",
            .subtitle = fmt::format("{} on {}, passes of 1 to 64 rows", shape.name, dram.name),
            .x_label = "products per byte",
            .y_label = "products per cycle",
            .logarithmic_x = true,
            .lowest_y = 0.0,
            .level_name = {},
            .series = {{.name = "roof", .points = {}}, {.name = "full mode", .points = {}}}};
  const double cycle = static_cast<double>(hardware.cycle_ps()) * 1e-12;
  for (const int64_t rows : {1, 2, 4, 8, 16, 32, 64}) {
    PassRunner runner(hardware, service_of(dram), shape);
    const int64_t time = runner.run({.mode = Mode::kFull, .rows = rows, .context = context});
    const auto macs = static_cast<double>(runner.totals().macs);
    const double intensity =
        macs / static_cast<double>(runner.totals().bytes_read + runner.totals().bytes_written);
    const double roof = std::min(static_cast<double>(peak_macs(hardware, Mode::kFull)),
                                 intensity * dram.peak_bytes_per_second() * cycle);
    const double x = std::round(intensity * 10) / 10;  // what the axis can say
    plot.series[0].points.push_back({x, roof});
    plot.series[1].points.push_back(
        {x, macs * static_cast<double>(hardware.cycle_ps()) / static_cast<double>(time)});
  }
  return svg(plot);
}

std::string timelines(const Hardware& hardware, const Dram& dram, const Shape& shape) {
  std::string html;
  for (const auto& [mode, rows, title] :
       {std::tuple{Mode::kDraft, int64_t{1}, "The first blocks of the down matrix: a draft"},
        {Mode::kFull, int64_t{7}, "The same: 7 rows in full mode"}}) {
    if (hardware.lanes(mode) == 0) continue;
    const Product product{.rows = rows,
                          .outputs = std::min<int64_t>(shape.hidden, 400),
                          .inputs = shape.intermediate,
                          .mode = mode,
                          .weight_bits = hardware.weight_bits(mode),
                          .sfu_passes = hardware.norm_passes};
    MachineClock clock(hardware, service_of(dram));
    std::vector<BlockTimes> times;
    clock.watch(&times);
    for (const Segment& segment : cut(hardware, product)) clock.run(segment);
    html += timeline(title, times);
  }
  return html;
}

std::string table_of(const std::vector<Sensitivity>& sensitivities) {
  std::string html = header({"changed", "speedup", "Td/Tar", "Tv/Tar"});
  for (const Sensitivity& one : sensitivities) {
    html += line({one.assumption, fmt::format("{:.3f}", one.speedup), fmt::format("{:.3f}", one.draft_time),
                  fmt::format("{:.3f}", one.verify_time)});
  }
  return html + "</table>\n" +
         note(sensitivities.front().model +
              " with L and r of table II for Llama2-7b and MT-bench, over FP16 changed alike.");
}

std::string area() {
  std::string html = header({"part", "area", "power, quantize mode", "power, full mode"});
  for (const ClaimedPart& part : kClaimedParts) {
    html += line({std::string(part.part), fmt::format("{:.2f} mm2", part.area * kClaimedArea / 100),
                  fmt::format("{:.0f} mW", part.draft_power * kClaimedDraftPower / 100),
                  fmt::format("{:.0f} mW", part.full_power * kClaimedFullPower / 100)});
  }
  return html + "</table>\n" + note("Table IV is the paper's alone: nothing here was synthesized.");
}

std::string opened(const std::string& title) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title><meta "
      "name=\"viewport\" "
      "content=\"width=device-width\"><style>{1}</style></head><body>\n<h1>{0}</h1>\n",
      escape(title), kPageStyle);
}

std::string beside_the_paper(const PaperPart& paper) {
  return heading("Beside the paper") + table_three(paper.comparison) +
         figures_seven_and_eight(paper.comparison) + figure_nine(paper.surfaces) +
         lengths_alone(paper.comparison) + map_of(paper.comparison) +
         heading("What each assumption changes") + table_of(paper.sensitivities) + heading("Area and power") +
         area() + "</body></html>\n";
}

}  // namespace

std::string page_of(const Hardware& hardware, const Dram& dram, const Shape& shape,
                    const Simulation& simulation, const PaperPart& paper) {
  return opened(fmt::format("{} on a model of SPEQ's accelerator", simulation.model)) +
         summary_of(simulation) + energy_of(simulation) + heading("What it spends its time on") +
         timelines(hardware, dram, shape) + roofline_of(hardware, dram, shape, simulation.prompt_tokens) +
         beside_the_paper(paper);
}

std::string page_of(const PaperPart& paper) {
  return opened(fmt::format("A model of SPEQ's accelerator: {} with {}", paper.comparison.machine,
                            paper.comparison.memory)) +
         beside_the_paper(paper);
}

}  // namespace verbatim::accelerator
