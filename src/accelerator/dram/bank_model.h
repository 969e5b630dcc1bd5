#pragma once

#include <vector>

#include "accelerator/dram/command.h"
#include "accelerator/dram/dram.h"

namespace verbatim::accelerator {

/// What reading a stretch of memory from its beginning took.
struct DramStream {
  int64_t first_read = 0;  ///< cycle of the first read command
  int64_t last_read = 0;   ///< cycle of the last one
  int64_t end = 0;         ///< cycle after the last beat of data
  int64_t refreshes = 0;
};

/// Reads bursts in order through one channel whose banks are closed, command by command, and appends the
/// commands to a log, if there is one, in the order of their cycles.
///
/// Reads go round the bank groups, a row of one bank in each: a turn. While a turn is read the rows of the
/// next are opened and those of the last closed, so that turns follow each other without a pause. A refresh
/// that is due waits for the end of the turn; then all banks are closed and refreshed, and the rows opened.
DramStream stream_reads(const Dram& dram, int64_t bursts, std::vector<DramCommand>* log = nullptr);

}  // namespace verbatim::accelerator
