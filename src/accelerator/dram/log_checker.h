#pragma once

#include <optional>
#include <string>
#include <vector>

#include "accelerator/dram/command.h"
#include "accelerator/dram/dram.h"

namespace verbatim::accelerator {

/// Replays a log of commands, in the order of their cycles, against the times of a memory and the states of
/// its banks. Nothing if all is as it should be; otherwise one line that names the first command that is not,
/// and the rule. Knows nothing of who made the log: each command is compared with those before it by a table
/// of least distances.
///
/// At each refresh, and at the end of the log, no more than `postponed` refreshes may be missing of one per
/// tREFI.
std::optional<std::string> first_fault(const Dram& dram, const std::vector<DramCommand>& log,
                                       int64_t postponed = 1);

}  // namespace verbatim::accelerator
