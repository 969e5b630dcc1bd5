#pragma once

#include <optional>

#include "accelerator/cycles/block.h"
#include "accelerator/cycles/pass.h"
#include "accelerator/dram/dram.h"
#include "accelerator/parameters/hardware.h"
#include "accelerator/workload/shape.h"
#include "accelerator/workload/steps.h"

namespace verbatim::accelerator {

/// What decoding took on a machine. Times are in ps.
struct Decoding {
  int64_t passes = 0;        ///< in full mode
  int64_t draft_passes = 0;  ///< in quantize mode
  int64_t tokens = 0;
  int64_t time = 0;
  int64_t draft_time = 0;
  int64_t full_time = 0;
  Totals totals;
  std::optional<double> dram_joules;  ///< nothing: the memory's energy is not known
  std::optional<double> chip_joules;  ///< nothing: the machine's power is not known
};

/// Decodes step by step: drafts in quantize mode, a row each; verifies in full mode, all rows at once. Throws
/// Error(kBadInput) for a machine without quantize mode when there are drafts. Without `skip` every block is
/// simulated, which changes nothing but the time that it takes.
Decoding decode(const Hardware& hardware, const Dram& dram, const Shape& shape, const Steps& steps,
                bool skip = true);

/// The same with a runner of the machine, memory and model, which is rewound first and remembers for the next
/// time what skipping needs.
Decoding decode(PassRunner& runner, const Hardware& hardware, const Dram& dram, const Steps& steps);

/// The steps of plain decoding that append as many tokens, one each.
Steps plain_steps(const Steps& steps);

}  // namespace verbatim::accelerator
