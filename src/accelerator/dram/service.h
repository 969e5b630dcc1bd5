#pragma once

#include <cstdint>

#include "accelerator/dram/dram.h"

namespace verbatim::accelerator {

/// A memory as the cycle model sees it: all channels together, in ps. What the bank model does command by
/// command is here a closed form: bursts follow each other at a steady pace, but for an outage once in each
/// refresh interval, in which all banks are closed, refreshed and opened again.
struct DramService {
  int64_t burst_bytes = 0;    ///< of all channels
  int64_t pace_ps = 0;        ///< from one burst to the next
  int64_t interval_ps = 0;    ///< tREFI
  int64_t outage_ps = 0;      ///< at the beginning of each interval
  int64_t latency_ps = 0;     ///< from a read to the end of its data, with the opening of its row
  int64_t turnaround_ps = 0;  ///< from reading to writing and back

  /// Time of transferring so many bytes, refresh not counted: whole bursts.
  int64_t transfer_ps(int64_t bytes) const;
  /// When a transfer of `transfer` ps that begins at `start` or as soon after as the memory is there has been
  /// asked for whole. Never earlier for a later start or a longer transfer.
  int64_t finish(int64_t start, int64_t transfer) const;
  /// The share of the time in which the memory transfers when it never pauses for anything but refresh.
  double efficiency() const;
};

DramService service_of(const Dram& dram);

/// The cycles that stream_reads() takes, by a formula: the outages of the refreshes that come due while the
/// reads go on, besides the reads at their pace.
int64_t closed_form_cycles(const Dram& dram, int64_t bursts);

/// The share of the time that refresh alone leaves: 1 - tRFC / tREFI.
double refresh_leaves(const Dram& dram);

}  // namespace verbatim::accelerator
