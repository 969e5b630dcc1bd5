#include "accelerator/paper/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "accelerator/cycles/pass.h"
#include "accelerator/paper/equations.h"

namespace verbatim::accelerator {

namespace {

/// A gain in energy by other joules over ours, if both are known.
std::optional<double> gain(const std::optional<double>& other, const std::optional<double>& ours) {
  if (!other || !ours) return std::nullopt;
  return *other / *ours;
}

double pass_time(int64_t time, int64_t passes) {
  return static_cast<double>(time) / static_cast<double>(passes);
}

/// The sums behind a mean over models.
struct Sums {
  double speedup = 0;
  double dram_energy = 0;
  double chip_energy = 0;
};

/// Simulates what the paper decoded on one model, on SPEQ's machine and all others.
void compare_model(const Hardware& hardware, const Dram& dram, const Shape& shape,
                   const std::vector<Hardware>& others, Comparison& comparison,
                   std::map<std::string, Sums>& sums) {
  const Steps plain = steps_of(0, 0, comparison.prompt_tokens, kClaimedTokens);
  std::vector<Decoding> decoded;
  for (const Hardware& other : others) decoded.push_back(decode(other, dram, shape, plain));
  const Decoding& fp16 = decoded.front();
  const double tar = pass_time(fp16.full_time, fp16.passes);
  PassRunner runner(hardware, service_of(dram), shape);
  for (const Claim& claim : kClaims) {
    if (claim.model != shape.name) continue;
    const Decoding ours =
        decode(runner, hardware, dram,
               steps_of(claim.draft_length, claim.acceptance, comparison.prompt_tokens, kClaimedTokens));
    comparison.cells.push_back({.claim = claim,
                                .simulated = static_cast<double>(fp16.time) / static_cast<double>(ours.time),
                                .fitted = speedup(claim.draft_length, claim.acceptance, kFittedDraftTime, 1),
                                .draft_time = pass_time(ours.draft_time, ours.draft_passes) / tar,
                                .verify_time = pass_time(ours.full_time, ours.passes) / tar});
    for (size_t i = 0; i < others.size(); ++i) {
      Sums& sum = sums[others[i].name];
      sum.speedup += static_cast<double>(decoded[i].time) / static_cast<double>(ours.time);
      sum.dram_energy += gain(decoded[i].dram_joules, ours.dram_joules).value_or(NAN);
      const double joules = kClaimedFullPower * static_cast<double>(decoded[i].time) * 1e-15;
      sum.chip_energy += gain(joules, ours.chip_joules).value_or(NAN);
    }
  }
}

const char* name_of(Hardware::GroupsLie lie) {
  return lie == Hardware::GroupsLie::kAcrossPes ? "across PEs" : "within a PE";
}
const char* name_of(Hardware::TilesShare share) {
  constexpr const char* kNames[] = {"outputs", "inputs", "rows"};
  return kNames[static_cast<int>(share)];
}

/// The times of passes over all mappings, on the default memory with more and fewer channels.
void add_map(const Hardware& hardware, const Dram& dram, const Shape& shape, Comparison& comparison) {
  comparison.map_rows = 7;
  comparison.map_model = shape.name;
  const int64_t context = comparison.prompt_tokens + kClaimedTokens / 2;
  double least = INFINITY;
  for (const auto lie : {Hardware::GroupsLie::kAcrossPes, Hardware::GroupsLie::kWithinPe}) {
    for (const auto share :
         {Hardware::TilesShare::kOutputs, Hardware::TilesShare::kInputs, Hardware::TilesShare::kRows}) {
      Hardware machine = hardware;
      machine.groups_lie = lie;
      machine.tiles_share = share;
      for (const int64_t channels : {2, 4, 8, 12, 20, 40, 80}) {
        Dram memory = dram;
        memory.channels = channels;
        const auto time = [&](Mode mode, int64_t rows) {
          PassRunner runner(machine, service_of(memory), shape);
          return static_cast<double>(runner.run({.mode = mode, .rows = rows, .context = context}));
        };
        const double plain = time(Mode::kFull, 1);
        MapPoint point{.mapping = fmt::format("groups {}, tiles share {}", name_of(lie), name_of(share)),
                       .gigabytes_per_second = memory.peak_bytes_per_second() * 1e-9,
                       .draft_time = time(Mode::kDraft, 1) / plain,
                       .verify_time = time(Mode::kFull, comparison.map_rows) / plain};
        const double distance = std::hypot(point.draft_time - kFittedDraftTime, point.verify_time - 1);
        if (distance < least) {
          least = distance;
          comparison.nearest = point;
        }
        comparison.map.push_back(std::move(point));
      }
    }
  }
}

std::string with_sign(double percent) {
  return fmt::format("{:+.1f} %", percent);
}
std::string known(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f}", *value) : std::string("not known");
}
std::string printed(double value) {
  return value > 0 ? fmt::format("{:.2f}", value) : std::string("-");
}

}  // namespace

Comparison compare(const Hardware& hardware, const Dram& dram, int64_t prompt_tokens,
                   const std::vector<Shape>& shapes) {
  Comparison comparison;
  comparison.machine = hardware.name;
  comparison.memory = dram.name;
  comparison.prompt_tokens = prompt_tokens;
  std::vector<Hardware> others;
  for (const ClaimedGain& claim : kClaimedGains) others.push_back(load_hardware(std::string(claim.machine)));
  std::map<std::string, Sums> sums;
  for (const Shape& shape : shapes) {
    compare_model(hardware, dram, shape, others, comparison, sums);
  }
  const auto cells = static_cast<double>(comparison.cells.size());
  const auto mean = [&](double sum) {
    return std::isfinite(sum) ? std::optional<double>(sum / cells) : std::nullopt;
  };
  for (const ClaimedGain& claim : kClaimedGains) {
    const Sums& sum = sums[std::string(claim.machine)];
    comparison.gains.push_back({.claim = claim,
                                .speedup = sum.speedup / cells,
                                .dram_energy = mean(sum.dram_energy),
                                .chip_energy = mean(sum.chip_energy)});
  }
  const auto llama = std::find_if(shapes.begin(), shapes.end(),
                                  [](const Shape& shape) { return shape.name == "llama3.1-8b"; });
  add_map(hardware, dram, llama == shapes.end() ? shapes.front() : *llama, comparison);
  return comparison;
}

std::string text_of(const Comparison& comparison) {
  std::string text = fmt::format(
      "{} with {}, {} tokens after prompts of {}; nothing is fitted but the column that says so\n\n"
      "Tables II and III\n  {:<12} {:<10} {:>6} {:>6} {:>7} {:>10} {:>9} {:>7} {:>7} {:>7}\n",
      comparison.machine, comparison.memory, kClaimedTokens, comparison.prompt_tokens, "model", "task", "L",
      "r", "paper", "simulated", "deviation", "Td/Tar", "Tv/Tar", "fitted");
  double paper = 0;
  double simulated = 0;
  double acceptance = 0;
  for (const ComparedCell& cell : comparison.cells) {
    const Claim& claim = cell.claim;
    text +=
        fmt::format("  {:<12} {:<10} {:>6.2f} {:>6.3f} {:>7.2f} {:>10.2f} {:>9} {:>7.3f} {:>7.3f} {:>7.2f}\n",
                    claim.model, claim.task, claim.draft_length, claim.acceptance, claim.speedup,
                    cell.simulated, with_sign(100 * (cell.simulated / claim.speedup - 1)), cell.draft_time,
                    cell.verify_time, cell.fitted);
    paper += claim.speedup;
    simulated += cell.simulated;
    acceptance += claim.acceptance;
  }
  const auto cells = static_cast<double>(comparison.cells.size());
  text += fmt::format("  mean         {:>24.3f} {:>7.2f} {:>10.2f} {:>9}\n", acceptance / cells,
                      paper / cells, simulated / cells, with_sign(100 * (simulated / paper - 1)));
  text += fmt::format(
      "  fitted: equation 2 with Tv = Tar and Td/Tar = {}, chosen so that it gives table III; it describes "
      "no "
      "machine\n\n",
      kFittedDraftTime);
  text += fmt::format("Figures 7 and 8, means\n  {:<10} {:>6} {:>10} {:>10} {:>14} {:>16} {:>12}\n", "over",
                      "paper", "simulated", "deviation", "energy, paper", "memory's energy", "chip's");
  for (const ComparedGain& one : comparison.gains) {
    const std::string deviation =
        one.claim.speedup > 0 ? with_sign(100 * (one.speedup / one.claim.speedup - 1)) : "-";
    text += fmt::format("  {:<10} {:>6} {:>10.2f} {:>10} {:>14} {:>16} {:>12}\n", one.claim.machine,
                        printed(one.claim.speedup), one.speedup, deviation, printed(one.claim.energy),
                        known(one.dram_energy), known(one.chip_energy));
  }
  text +=
      "  chip's: had the other chip the 559 mW of SPEQ's full mode, which the paper does not say; the memory "
      "not "
      "counted\n\n";
  text += fmt::format("Times of passes of {} by mapping and bandwidth: Td/Tar, Tv/Tar of {} rows\n",
                      comparison.map_model, comparison.map_rows);
  std::string mapping;
  for (const MapPoint& point : comparison.map) {
    if (point.mapping != mapping) text += fmt::format("  {}\n", point.mapping);
    mapping = point.mapping;
    text += fmt::format("    {:>7.1f} GB/s {:>7.3f} {:>7.3f}\n", point.gigabytes_per_second, point.draft_time,
                        point.verify_time);
  }
  const MapPoint& near = comparison.nearest;
  text += fmt::format("  nearest to ({}, 1), where table III lies: {}, {:.1f} GB/s, ({:.3f}, {:.3f})\n\n",
                      kFittedDraftTime, near.mapping, near.gigabytes_per_second, near.draft_time,
                      near.verify_time);
  text += fmt::format("Table IV, the paper's alone: {} mm2, {} mW drafting, {} mW in full mode\n",
                      kClaimedArea, kClaimedDraftPower, kClaimedFullPower);
  for (const ClaimedPart& part : kClaimedParts) {
    text += fmt::format("  {:<8} {:>5.1f} % of the area {:>5.1f} % {:>5.1f} %\n", part.part, part.area,
                        part.draft_power, part.full_power);
  }
  return text;
}

}  // namespace verbatim::accelerator
