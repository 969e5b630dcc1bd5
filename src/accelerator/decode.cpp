#include "accelerator/decode.h"

#include "accelerator/fail.h"

namespace verbatim::accelerator {

Decoding decode(const Hardware& hardware, const Dram& dram, const Shape& shape, const Steps& steps,
                bool skip) {
  PassRunner runner(hardware, service_of(dram), shape, skip);
  return decode(runner, hardware, dram, steps);
}

Decoding decode(PassRunner& runner, const Hardware& hardware, const Dram& dram, const Steps& steps) {
  if (steps.draft_passes() > 0 && hardware.draft_weights == 0) {
    bad_input("{} has no quantize mode to draft in", hardware.name);
  }
  constexpr int64_t kMostPasses = int64_t{1} << 22;
  const int64_t passes = static_cast<int64_t>(steps.steps.size()) + steps.draft_passes();
  if (passes > kMostPasses) {
    bad_input("the steps have {} passes, and at most {} are simulated", passes, kMostPasses);
  }
  runner.rewind();
  Decoding decoding;
  for (const Step& step : steps.steps) {
    const int64_t context = step.position - 1;
    for (int64_t i = 0; i < step.draft_passes; ++i) {
      decoding.draft_time += runner.run({.mode = Mode::kDraft, .rows = 1, .context = context + i});
    }
    decoding.full_time += runner.run({.mode = Mode::kFull, .rows = step.rows, .context = context});
    ++decoding.passes;
    decoding.draft_passes += step.draft_passes;
  }
  decoding.tokens = steps.tokens();
  decoding.time = runner.now();
  decoding.totals = runner.totals();
  if (dram.pj_per_bit) {
    const int64_t bytes = decoding.totals.bytes_read + decoding.totals.bytes_written;
    decoding.dram_joules = static_cast<double>(bytes) * 8 * *dram.pj_per_bit * 1e-12;
  }
  const bool drafts = decoding.draft_passes > 0;
  if (hardware.full_mw && (hardware.draft_mw || !drafts)) {
    // mW times ps
    decoding.chip_joules = (*hardware.full_mw * static_cast<double>(decoding.full_time) +
                            hardware.draft_mw.value_or(0) * static_cast<double>(decoding.draft_time)) *
                           1e-15;
  }
  return decoding;
}

Steps plain_steps(const Steps& steps) {
  Steps plain{.prompt_tokens = steps.prompt_tokens, .steps = {}};
  if (steps.steps.empty()) return plain;
  int64_t position = steps.steps.front().position;
  for (int64_t i = 0; i < steps.tokens(); ++i) plain.steps.push_back({.position = position++});
  return plain;
}

}  // namespace verbatim::accelerator
