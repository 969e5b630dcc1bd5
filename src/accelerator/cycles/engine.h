#pragma once

#include <array>

#include "accelerator/cycles/block.h"
#include "accelerator/dram/service.h"
#include "accelerator/parameters/hardware.h"

namespace verbatim::accelerator {

/// A machine at work: memory, array and SFU, each on one thing at a time, and the buffers between them. Times
/// are in ps since the beginning.
///
/// The memory is asked at edges of the machine's clock. Blocks are loaded in order, as soon as half of the
/// buffer for weights is free; the array takes a block when it is there whole and what it waits for is ready;
/// the SFU takes the sums of a block, and the array may not begin new sums while both halves of the output
/// buffer wait for the SFU. With single buffers a half is the whole.
class MachineClock {
 public:
  MachineClock(const Hardware& hardware, const DramService& dram, bool skip = true);

  /// Does all blocks of a segment. As soon as the machine is in a state in which it has been before, up to a
  /// shift in time that the refreshes of the memory agree with, whole periods are added and not simulated;
  /// the result is the same. Without `skip` each block is simulated.
  void run(const Segment& segment);

  /// Has the times of all further blocks added to a list, which must outlive them. Nothing is skipped then.
  void watch(std::vector<BlockTimes>* times) { times_ = times; }

  /// When all is done.
  int64_t end() const;
  const Totals& totals() const { return totals_; }

  /// The state, relative to the memory's next free moment, and where in a refresh interval that lies: all
  /// that what follows depends on.
  using Relative = std::array<int64_t, 11>;
  Relative relative() const;
  /// Goes on from a state like this one, `shift` later, with what happened between two sums added.
  void jump(int64_t shift, const Relative& state, const Totals& gained);
  /// The memory's next free moment.
  int64_t memory_free() const { return memory_free_; }

 private:
  void step(const Block& block);

  const DramService dram_;
  const int64_t cycle_ps_;
  const int64_t pipeline_ps_;
  const int64_t sfu_latency_ps_;
  const int64_t halves_;
  const bool skip_;

  int64_t memory_free_ = 0;
  int64_t array_free_ = 0;
  int64_t sfu_free_ = 0;
  int64_t last_sum_ = 0;
  std::array<int64_t, 2> weights_free_{};  // when each half of the buffer can be loaded
  std::array<int64_t, 2> outputs_free_{};  // when each half can take sums
  std::array<int64_t, 2> noted_{};
  int64_t next_weights_ = 0;  // the half that is loaded next
  int64_t next_outputs_ = 0;
  Totals totals_;
  std::vector<BlockTimes>* times_ = nullptr;
};

}  // namespace verbatim::accelerator
