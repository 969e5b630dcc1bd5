#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "accelerator/decode.h"
#include "accelerator/paper/comparison.h"
#include "accelerator/paper/sensitivity.h"
#include "accelerator/paper/surface.h"
#include "accelerator/parameters/fields.h"
#include "accelerator/report/page.h"
#include "verbatim/accelerator.h"
#include "verbatim/error.h"

namespace verbatim {

namespace {

using namespace accelerator;

constexpr double kSecond = 1e12;  // in ps

double share(double part, double whole) {
  return whole > 0 ? part / whole : 0.0;
}

double mean_time(int64_t time, int64_t passes) {
  return share(static_cast<double>(time), static_cast<double>(passes));
}

SimulatedDecoding told(const Hardware& hardware, const Dram& dram, const Decoding& decoding) {
  const auto time = static_cast<double>(decoding.time);
  SimulatedDecoding told;
  told.machine = hardware.name;
  told.memory = dram.name;
  told.passes = decoding.passes;
  told.draft_passes = decoding.draft_passes;
  told.tokens = decoding.tokens;
  told.cycles = (decoding.time + hardware.cycle_ps() - 1) / hardware.cycle_ps();
  told.seconds = time / kSecond;
  told.seconds_draft = static_cast<double>(decoding.draft_time) / kSecond;
  told.seconds_full = static_cast<double>(decoding.full_time) / kSecond;
  told.bytes_read = decoding.totals.bytes_read;
  told.bytes_written = decoding.totals.bytes_written;
  told.weight_share = share(static_cast<double>(decoding.totals.weight_bytes),
                            static_cast<double>(decoding.totals.bytes_read));
  told.memory_busy = share(static_cast<double>(decoding.totals.memory_ps), time);
  told.array_busy = share(static_cast<double>(decoding.totals.array_cycles * hardware.cycle_ps()), time);
  told.dram_joules = decoding.dram_joules;
  told.chip_joules = decoding.chip_joules;
  return told;
}

Steps steps_for(const SimulateOptions& options) {
  const bool made_up = options.draft_length.has_value() || options.acceptance.has_value();
  if (!options.trace.empty()) {
    if (made_up) {
      throw Error(ErrorKind::kUsage,
                  "a trace says how long drafts are and what is accepted: leave out either");
    }
    return parse_steps(read_file(options.trace), options.trace);
  }
  if (options.draft_length.has_value() != options.acceptance.has_value()) {
    throw Error(ErrorKind::kUsage, "a draft length and an acceptance rate go together: give both or none");
  }
  Steps steps = steps_of(options.draft_length.value_or(0), options.acceptance.value_or(0),
                         options.prompt_tokens, options.generated_tokens);
  for (Step& step : steps.steps) step.draft_passes += options.dropped;
  return steps;
}

nlohmann::ordered_json as_json(const SimulatedDecoding& decoding) {
  nlohmann::ordered_json object;
  const auto joules = [](const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
  };
  object["machine"] = decoding.machine;
  object["memory"] = decoding.memory;
  object["passes"] = decoding.passes;
  object["draft_passes"] = decoding.draft_passes;
  object["tokens"] = decoding.tokens;
  object["cycles"] = decoding.cycles;
  object["seconds"] = decoding.seconds;
  object["seconds_draft"] = decoding.seconds_draft;
  object["seconds_full"] = decoding.seconds_full;
  object["bytes_read"] = decoding.bytes_read;
  object["bytes_written"] = decoding.bytes_written;
  object["weight_share"] = decoding.weight_share;
  object["memory_busy"] = decoding.memory_busy;
  object["array_busy"] = decoding.array_busy;
  object["dram_joules"] = joules(decoding.dram_joules);
  object["chip_joules"] = joules(decoding.chip_joules);
  return object;
}

std::string line_of(const SimulatedDecoding& decoding) {
  const auto joules = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.2f} J", *value) : std::string("not known");
  };
  return fmt::format(
      "  {:<14} {:>10.4f} s  {:>9.2f} tokens/s  memory {:>5.1f} %  array {:>5.1f} %  weights {:>5.1f} %  "
      "memory {}, chip {}\n",
      decoding.machine, decoding.seconds, share(static_cast<double>(decoding.tokens), decoding.seconds),
      100 * decoding.memory_busy, 100 * decoding.array_busy, 100 * decoding.weight_share,
      joules(decoding.dram_joules), joules(decoding.chip_joules));
}

/// The machine and the memory that the options name.
std::pair<Hardware, Dram> machine_of(const SimulateOptions& options) {
  Hardware hardware = load_hardware(options.hardware);
  Dram dram = load_dram(options.dram.empty() ? hardware.dram : options.dram);
  return {std::move(hardware), std::move(dram)};
}

}  // namespace

Simulation simulate(const SimulateOptions& options) {
  const auto [hardware, dram] = machine_of(options);
  const Hardware baseline = load_hardware(options.baseline);
  const Dram baseline_dram = load_dram(options.dram.empty() ? baseline.dram : options.dram);
  const Shape shape = load_shape(options.config);
  const Steps steps = steps_for(options);

  const Decoding decoding = decode(hardware, dram, shape, steps);
  const Decoding plain = decode(baseline, baseline_dram, shape, plain_steps(steps));
  Simulation simulation;
  simulation.model = shape.name;
  simulation.prompt_tokens = steps.prompt_tokens;
  simulation.drafted = steps.drafted();
  simulation.accepted = steps.accepted();
  simulation.steps = static_cast<int64_t>(steps.steps.size());
  simulation.decoding = told(hardware, dram, decoding);
  simulation.baseline = told(baseline, baseline_dram, plain);
  simulation.speedup = share(static_cast<double>(plain.time), static_cast<double>(decoding.time));
  const double pass = mean_time(plain.full_time, plain.passes);
  simulation.draft_time = share(mean_time(decoding.draft_time, decoding.draft_passes), pass);
  simulation.verify_time = share(mean_time(decoding.full_time, decoding.passes), pass);
  return simulation;
}

std::string simulation_text(const Simulation& simulation) {
  const SimulatedDecoding& decoding = simulation.decoding;
  std::string text =
      fmt::format("{}, {} tokens after a prompt of {}, {} and {}\n", simulation.model, decoding.tokens,
                  simulation.prompt_tokens, decoding.memory, simulation.baseline.memory);
  text +=
      fmt::format("{} steps, {} draft passes, {} of {} drafted tokens accepted, {:.2f} tokens per step\n\n",
                  simulation.steps, decoding.draft_passes, simulation.accepted, simulation.drafted,
                  share(static_cast<double>(decoding.tokens), static_cast<double>(simulation.steps)));
  text += line_of(decoding) + line_of(simulation.baseline);
  text += fmt::format("\nspeedup {:.3f}; Td/Tar {:.3f}, Tv/Tar {:.3f}\n", simulation.speedup,
                      simulation.draft_time, simulation.verify_time);
  return text;
}

std::string simulation_json(const Simulation& simulation) {
  nlohmann::ordered_json object;
  object["model"] = simulation.model;
  object["prompt_tokens"] = simulation.prompt_tokens;
  object["steps"] = simulation.steps;
  object["drafted"] = simulation.drafted;
  object["accepted"] = simulation.accepted;
  object["decoding"] = as_json(simulation.decoding);
  object["baseline"] = as_json(simulation.baseline);
  object["speedup"] = simulation.speedup;
  object["draft_time"] = simulation.draft_time;
  object["verify_time"] = simulation.verify_time;
  return object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

PaperComparison compare_with_paper(const SimulateOptions& options) {
  const auto [hardware, dram] = machine_of(options);
  return std::make_shared<PaperPart>(PaperPart{compare(hardware, dram, options.prompt_tokens),
                                               figure_nine_surfaces(hardware, dram),
                                               sensitivities(hardware, dram, options.prompt_tokens)});
}

std::string paper_text(const PaperComparison& paper) {
  std::string text = text_of(paper->comparison) + "\n";
  for (const Surface& surface : paper->surfaces) text += text_of(surface);
  text += fmt::format("  {}\n  the paper prints no numbers here\n\n", measured_thresholds().conditions);
  return text + text_of(paper->sensitivities);
}

std::string paper_page(const PaperComparison& paper) {
  return page_of(*paper);
}

std::string simulation_page(const SimulateOptions& options, const Simulation& simulation,
                            const PaperComparison& paper) {
  const auto [hardware, dram] = machine_of(options);
  return page_of(hardware, dram, load_shape(options.config), simulation, *paper);
}

std::vector<std::string> simulated_machines() {
  return hardware_names();
}

std::vector<std::string> simulated_memories() {
  return dram_names();
}

}  // namespace verbatim
