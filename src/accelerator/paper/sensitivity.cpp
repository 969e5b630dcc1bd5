#include "accelerator/paper/sensitivity.h"

#include <fmt/format.h>

#include <functional>

namespace verbatim::accelerator {

namespace {

constexpr int64_t kSensitivityTokens = 64;
constexpr double kDraftLength = 4.47;
constexpr double kAcceptance = 0.986;

/// Everything that an assumption may change.
struct Assumed {
  Hardware hardware;
  Hardware baseline;
  Dram dram;
  int64_t prompt_tokens = 0;
  int64_t dropped = 0;  ///< draft passes of a step whose token is not verified

  /// Changes both machines.
  void both(const std::function<void(Hardware&)>& change) {
    change(hardware);
    change(baseline);
  }
};

struct Change {
  const char* name;
  std::function<void(Assumed&)> apply;
};

std::vector<Change> changes() {
  using Lie = Hardware::GroupsLie;
  using Share = Hardware::TilesShare;
  const auto memory = [](const char* name) { return [name](Assumed& all) { all.dram = load_dram(name); }; };
  const auto channels = [](int64_t factor) {
    return [factor](Assumed& all) { all.dram.channels *= factor; };
  };
  const auto both = [](std::function<void(Hardware&)> change) {
    return [change = std::move(change)](Assumed& all) { all.both(change); };
  };
  return {
      {"nothing", [](Assumed&) {}},
      {"memory: DDR4-3200, one channel", memory("ddr4-3200")},
      {"memory: LPDDR4-3200, four channels", memory("lpddr4-3200")},
      {"memory: HBM2, one stack", memory("hbm2")},
      {"memory: twice the channels", channels(2)},
      {"memory: four times the channels", channels(4)},
      {"groups within a PE", both([](Hardware& one) { one.groups_lie = Lie::kWithinPe; })},
      {"tiles share inputs", both([](Hardware& one) { one.tiles_share = Share::kInputs; })},
      {"tiles share rows", both([](Hardware& one) { one.tiles_share = Share::kRows; })},
      {"single buffers", both([](Hardware& one) { one.double_buffered = false; })},
      {"pipeline of 0 cycles", both([](Hardware& one) { one.pipeline_cycles = 0; })},
      {"pipeline of 200 cycles", both([](Hardware& one) { one.pipeline_cycles = 200; })},
      {"SFU of 8 lanes", both([](Hardware& one) { one.sfu_lanes = 8; })},
      {"SFU of 1024 lanes", both([](Hardware& one) { one.sfu_lanes = 1024; })},
      {"SFU latency of 500 cycles", both([](Hardware& one) { one.sfu_latency_cycles = 500; })},
      {"twice the values through the SFU", both([](Hardware& one) {
         for (int64_t Hardware::*const passes :
              {&Hardware::norm_passes, &Hardware::rotation_passes, &Hardware::softmax_passes,
               &Hardware::activation_passes, &Hardware::logit_passes}) {
           one.*passes *= 2;
         }
       })},
      {"keys and values of 8 bits", both([](Hardware& one) { one.kv_bits = 8; })},
      {"a draft dropped in each step", [](Assumed& all) { all.dropped = 1; }},
      {"prompts of 128 tokens", [](Assumed& all) { all.prompt_tokens = 128; }},
      {"prompts of 4096 tokens", [](Assumed& all) { all.prompt_tokens = 4096; }},
      {"storage verbatim, BF16",
       [](Assumed& all) {
         const Hardware verbatim = load_hardware("speq-verbatim");
         all.hardware.full_bits = verbatim.full_bits;
         all.hardware.exceptions = verbatim.exceptions;
         all.hardware.exception_bits = verbatim.exception_bits;
       }},
      {"storage verbatim, 1 % exceptions",
       [](Assumed& all) {
         const Hardware verbatim = load_hardware("speq-verbatim");
         all.hardware.full_bits = verbatim.full_bits;
         all.hardware.exceptions = 0.01;
         all.hardware.exception_bits = verbatim.exception_bits;
       }},
  };
}

double time_of_pass(int64_t time, int64_t passes) {
  return static_cast<double>(time) / static_cast<double>(passes);
}

Sensitivity simulated(const Change& change, Assumed assumed, const Shape& shape) {
  change.apply(assumed);
  Steps steps = steps_of(kDraftLength, kAcceptance, assumed.prompt_tokens, kSensitivityTokens);
  for (Step& step : steps.steps) step.draft_passes += assumed.dropped;
  const Decoding ours = decode(assumed.hardware, assumed.dram, shape, steps);
  const Decoding plain = decode(assumed.baseline, assumed.dram, shape, plain_steps(steps));
  const double tar = time_of_pass(plain.full_time, plain.passes);
  return {.model = shape.name,
          .assumption = change.name,
          .speedup = static_cast<double>(plain.time) / static_cast<double>(ours.time),
          .draft_time = time_of_pass(ours.draft_time, ours.draft_passes) / tar,
          .verify_time = time_of_pass(ours.full_time, ours.passes) / tar};
}

}  // namespace

std::vector<Sensitivity> sensitivities(const Hardware& hardware, const Dram& dram, int64_t prompt_tokens,
                                       const Shape& shape) {
  Assumed assumed{.hardware = hardware,
                  .baseline = load_hardware("fp16"),
                  .dram = dram,
                  .prompt_tokens = prompt_tokens,
                  .dropped = 0};
  std::vector<Sensitivity> all;
  for (const Change& change : changes()) all.push_back(simulated(change, assumed, shape));
  return all;
}

std::string text_of(const std::vector<Sensitivity>& sensitivities) {
  std::string text = fmt::format("Sensitivity, {} with L {} and r {}\n  {:<36} {:>8} {:>8} {:>8}\n",
                                 sensitivities.front().model, kDraftLength, kAcceptance, "changed", "speedup",
                                 "Td/Tar", "Tv/Tar");
  for (const Sensitivity& one : sensitivities) {
    text += fmt::format("  {:<36} {:>8.3f} {:>8.3f} {:>8.3f}\n", one.assumption, one.speedup, one.draft_time,
                        one.verify_time);
  }
  return text;
}

}  // namespace verbatim::accelerator
