#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "accelerator/cycles/engine.h"
#include "accelerator/workload/shape.h"

namespace verbatim::accelerator {

/// A pass over some rows of one sequence.
struct Pass {
  Mode mode = Mode::kFull;
  int64_t rows = 1;
  int64_t context = 0;  ///< positions before these rows whose keys and values are known

  auto operator<=>(const Pass&) const = default;
};

/// Runs passes of a model one after the other on a machine. Machine and model must outlive it.
class PassRunner {
 public:
  /// Without `skip` each block is simulated.
  PassRunner(const Hardware& hardware, const DramService& dram, const Shape& shape, bool skip = true);
  ~PassRunner();

  /// Forgets what was run, but for what skipping needs: the machine is idle, and the time is 0.
  void rewind();

  /// Runs a pass; returns its time in ps, until the last logits are there.
  int64_t run(const Pass& pass);

  int64_t now() const { return clock_->end(); }
  const Totals& totals() const { return clock_->totals(); }

 private:
  struct Operation;
  void run(Operation& operation);
  Operation& operation(const Pass& pass, int place);
  std::vector<Segment> attention(const Pass& pass) const;

  const Hardware& hardware_;
  const DramService dram_;
  const Shape& shape_;
  const bool skip_;
  std::optional<MachineClock> clock_;
  std::map<std::pair<Pass, int>, std::unique_ptr<Operation>> operations_;  // all but attention
};

}  // namespace verbatim::accelerator
