#include "accelerator/dram/service.h"

#include <algorithm>

namespace verbatim::accelerator {

namespace {

/// The cycles by which the last of some reads after an opening of closed banks comes later than at their
/// pace: banks open one after the other.
int64_t opening_cycles(const Dram& dram, int64_t reads) {
  return (std::min(dram.bank_groups, reads) - 1) * std::max<int64_t>(0, dram.tRRD_S - dram.pace());
}

/// The cycles that a refresh between two reads puts in, beyond their pace.
int64_t outage_cycles(const Dram& dram) {
  return dram.tRTP + dram.tRP_all + dram.tRFC + dram.tRCD - dram.pace() +
         opening_cycles(dram, dram.bank_groups);
}

}  // namespace

int64_t DramService::transfer_ps(int64_t bytes) const {
  return (bytes + burst_bytes - 1) / burst_bytes * pace_ps;
}

int64_t DramService::finish(int64_t start, int64_t transfer) const {
  if (transfer == 0) return start;
  const int64_t base = start / interval_ps * interval_ps;
  const int64_t within = std::max(start - base, outage_ps) - outage_ps;  // of what an interval leaves
  const int64_t left = interval_ps - outage_ps;
  const int64_t total = within + transfer;
  const int64_t intervals = (total - 1) / left;
  return base + intervals * interval_ps + outage_ps + total - intervals * left;
}

double DramService::efficiency() const {
  return static_cast<double>(interval_ps - outage_ps) / static_cast<double>(interval_ps);
}

DramService service_of(const Dram& dram) {
  const int64_t clock = dram.clock_ps;
  const int64_t burst = dram.burst_cycles();
  return {
      .burst_bytes = dram.channels * dram.burst_bytes(),
      .pace_ps = dram.pace() * clock,
      .interval_ps = dram.tREFI * clock,
      .outage_ps = outage_cycles(dram) * clock,
      .latency_ps = (dram.tRCD + dram.tCL + burst) * clock,
      .turnaround_ps =
          (std::max<int64_t>(dram.tCL + burst + 2 - dram.tCWL, 0) + dram.tCWL + burst + dram.tWTR_L) * clock};
}

int64_t closed_form_cycles(const Dram& dram, int64_t bursts) {
  if (bursts <= 0) return 0;
  const int64_t turn = dram.bank_groups * dram.bursts_per_row() * dram.pace();
  const int64_t turns = (bursts * dram.pace() - 1) / turn;  // that end before the last burst
  const int64_t whole_opening = opening_cycles(dram, dram.bank_groups);
  const int64_t begin = dram.tRCD + whole_opening;
  const int64_t outage = outage_cycles(dram);
  // The k-th refresh comes at the end of the first turn that ends, the k - 1 before it counted, at k tREFI or
  // later; k is as large as the last end of a turn allows.
  const auto refreshes_after = [&](int64_t ended) {
    return std::clamp<int64_t>((begin + ended * turn - outage) / (dram.tREFI - outage), 0, ended);
  };
  const int64_t refreshes = refreshes_after(turns);
  // Where the last turn begins with closed banks and does not read of all of them.
  const bool opened = turns == 0 || refreshes > refreshes_after(turns - 1);
  const int64_t last = bursts - turns * turn / dram.pace();
  const int64_t not_opened = opened ? whole_opening - opening_cycles(dram, last) : 0;
  return begin + (bursts - 1) * dram.pace() + refreshes * outage - not_opened + dram.tCL +
         dram.burst_cycles();
}

double refresh_leaves(const Dram& dram) {
  return 1.0 - static_cast<double>(dram.tRFC) / static_cast<double>(dram.tREFI);
}

}  // namespace verbatim::accelerator
