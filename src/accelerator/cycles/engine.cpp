#include "accelerator/cycles/engine.h"

#include <algorithm>

namespace verbatim::accelerator {

Totals& Totals::operator+=(const Totals& other) {
  add_times(other, {}, 1);
  return *this;
}

void Totals::add_times(const Totals& after, const Totals& before, int64_t times) {
  const auto add = [&](int64_t Totals::*what) { this->*what += times * (after.*what - before.*what); };
  for (int64_t Totals::*const what :
       {&Totals::bytes_read, &Totals::bytes_written, &Totals::weight_bytes, &Totals::kv_bytes, &Totals::macs,
        &Totals::array_cycles, &Totals::memory_ps, &Totals::sfu_cycles, &Totals::blocks}) {
    add(what);
  }
}

MachineClock::MachineClock(const Hardware& hardware, const DramService& dram, bool skip)
    : dram_(dram),
      cycle_ps_(hardware.cycle_ps()),
      pipeline_ps_(hardware.pipeline_cycles * hardware.cycle_ps()),
      sfu_latency_ps_(hardware.sfu_latency_cycles * hardware.cycle_ps()),
      halves_(hardware.double_buffered ? 2 : 1),
      skip_(skip) {}

void MachineClock::step(const Block& block) {
  const auto at = [this](std::array<int64_t, 2>& halves, int64_t index) -> int64_t& {
    return halves[static_cast<size_t>(index % halves_)];
  };
  // The memory.
  int64_t transfer = dram_.transfer_ps(block.read_bytes);
  if (block.write_bytes > 0) transfer += dram_.transfer_ps(block.write_bytes) + dram_.turnaround_ps;
  const int64_t load = std::max(memory_free_, at(weights_free_, next_weights_));
  const auto edge = [this](int64_t time) { return (time + cycle_ps_ - 1) / cycle_ps_ * cycle_ps_; };
  const int64_t asked = dram_.finish(load, transfer);
  memory_free_ = edge(asked);
  const int64_t loaded = transfer > 0 ? edge(asked + dram_.latency_ps) : load;
  // The array.
  int64_t begin = std::max(loaded, array_free_);
  if (block.waits_for == Block::kEverything) begin = std::max({begin, sfu_free_, last_sum_});
  if (block.waits_for >= 0) begin = std::max(begin, noted_[static_cast<size_t>(block.waits_for)]);
  if (block.begins_sums) begin = std::max(begin, at(outputs_free_, next_outputs_));
  array_free_ = begin + block.array_cycles * cycle_ps_;
  at(weights_free_, next_weights_) = array_free_;
  next_weights_ = (next_weights_ + 1) % halves_;
  last_sum_ = array_free_ + pipeline_ps_;
  if (times_ != nullptr) times_->push_back({load, asked, begin, array_free_, 0, 0});
  // The SFU.
  if (block.sfu_cycles > 0) {
    sfu_free_ = std::max(sfu_free_, last_sum_) + sfu_latency_ps_ + block.sfu_cycles * cycle_ps_;
    at(outputs_free_, next_outputs_) = sfu_free_;
    next_outputs_ = (next_outputs_ + 1) % halves_;
    if (times_ != nullptr) {
      times_->back().sfu_begin = sfu_free_ - sfu_latency_ps_ - block.sfu_cycles * cycle_ps_;
      times_->back().sfu_end = sfu_free_;
    }
    if (block.noted >= 0) noted_[static_cast<size_t>(block.noted)] = sfu_free_;
  }
  totals_.bytes_read += block.read_bytes;
  totals_.bytes_written += block.write_bytes;
  totals_.weight_bytes += block.weight_bytes;
  totals_.kv_bytes += block.kv_bytes;
  totals_.macs += block.macs;
  totals_.array_cycles += block.array_cycles;
  totals_.memory_ps += transfer;
  totals_.sfu_cycles += block.sfu_cycles;
  ++totals_.blocks;
}

void MachineClock::run(const Segment& segment) {
  // Brent's way of finding a period: the state is compared with one that is kept for twice as long each time.
  Relative kept = relative();
  Totals totals_kept = totals_;
  int64_t time_kept = memory_free_;
  int64_t period = 0;
  int64_t power = 1;
  bool looking = skip_ && times_ == nullptr && segment.times > 2;
  for (int64_t done = 0; done < segment.times; ++done) {
    for (const Block& block : segment.blocks) step(block);
    if (!looking) continue;
    ++period;
    const Relative now = relative();
    if (now == kept) {
      const int64_t periods = (segment.times - done - 1) / period;
      Totals gained;
      gained.add_times(totals_, totals_kept, periods);
      jump(periods * (memory_free_ - time_kept), now, gained);
      done += periods * period;
      looking = false;
    } else if (period == power) {
      kept = now;
      totals_kept = totals_;
      time_kept = memory_free_;
      power *= 2;
      period = 0;
    }
  }
}

int64_t MachineClock::end() const {
  return std::max({memory_free_, last_sum_, sfu_free_});
}

MachineClock::Relative MachineClock::relative() const {
  // Whatever lies before the memory's next free moment makes no difference any more: each block is loaded
  // after it, and everything else comes after its block.
  const auto after = [this](int64_t time) { return std::max<int64_t>(time - memory_free_, 0); };
  return {memory_free_ % dram_.interval_ps,
          next_weights_ * 2 + next_outputs_,
          after(array_free_),
          after(sfu_free_),
          after(last_sum_),
          after(weights_free_[0]),
          after(weights_free_[1]),
          after(outputs_free_[0]),
          after(outputs_free_[1]),
          after(noted_[0]),
          after(noted_[1])};
}

void MachineClock::jump(int64_t shift, const Relative& state, const Totals& gained) {
  memory_free_ += shift;
  array_free_ = memory_free_ + state[2];
  sfu_free_ = memory_free_ + state[3];
  last_sum_ = memory_free_ + state[4];
  weights_free_ = {memory_free_ + state[5], memory_free_ + state[6]};
  outputs_free_ = {memory_free_ + state[7], memory_free_ + state[8]};
  noted_ = {memory_free_ + state[9], memory_free_ + state[10]};
  next_weights_ = state[1] / 2;
  next_outputs_ = state[1] % 2;
  totals_ += gained;
}

}  // namespace verbatim::accelerator
