#include "accelerator/dram/bank_model.h"

#include <algorithm>
#include <array>
#include <set>

namespace verbatim::accelerator {

namespace {

constexpr int64_t kNever = -1'000'000'000;

struct Bank {
  int64_t row = -1;  // -1: closed
  int64_t activated = kNever;
  int64_t read = kNever;
  int64_t closed = kNever;
};

/// A channel: what its banks have done, and from when on each command may come.
class Channel {
 public:
  Channel(const Dram& dram, std::vector<DramCommand>* log)
      : dram_(dram), log_(log), banks_(static_cast<size_t>(dram.banks())) {}

  /// Opens a row as soon as the times allow, not before `from`.
  void activate(int64_t bank, int64_t row, int64_t from) {
    Bank& one = at(bank);
    int64_t cycle = std::max({from, refreshed_ + dram_.tRFC, one.activated + dram_.tRC,
                              std::max(one.closed + dram_.tRP, closed_all_ + dram_.tRP_all)});
    for (int64_t other = 0; other < dram_.banks(); ++other) {
      const bool near = other / dram_.banks_per_group == bank / dram_.banks_per_group;
      cycle = std::max(cycle, at(other).activated + (near ? dram_.tRRD_L : dram_.tRRD_S));
    }
    cycle = free_from(std::max(cycle, activations_[0] + dram_.tFAW));
    std::rotate(activations_.begin(), activations_.begin() + 1, activations_.end());
    activations_.back() = cycle;
    one.activated = cycle;
    one.row = row;
    issue({cycle, DramCommand::Kind::kActivate, bank, row});
  }

  /// Reads a burst of the open row of a bank as soon as the times allow; returns the cycle.
  int64_t read(int64_t bank) {
    Bank& one = at(bank);
    int64_t cycle = one.activated + dram_.tRCD;
    for (int64_t other = 0; other < dram_.banks(); ++other) {
      const bool near = other / dram_.banks_per_group == bank / dram_.banks_per_group;
      cycle = std::max(cycle,
                       at(other).read + std::max(near ? dram_.tCCD_L : dram_.tCCD_S, dram_.burst_cycles()));
    }
    cycle = free_from(cycle);
    one.read = cycle;
    issue({cycle, DramCommand::Kind::kRead, bank, one.row});
    return cycle;
  }

  void precharge(int64_t bank) {
    Bank& one = at(bank);
    if (one.row < 0) return;
    const int64_t cycle = free_from(std::max(one.activated + dram_.tRAS, one.read + dram_.tRTP));
    one.row = -1;
    one.closed = cycle;
    issue({cycle, DramCommand::Kind::kPrecharge, bank, -1});
  }

  /// Closes all banks and refreshes them.
  void refresh() {
    int64_t cycle = 0;
    int64_t closed = kNever;
    for (Bank& one : banks_) {
      if (one.row >= 0) cycle = std::max({cycle, one.activated + dram_.tRAS, one.read + dram_.tRTP});
      closed = std::max(closed, one.closed);
      one.row = -1;
    }
    closed_all_ = free_from(cycle);
    issue({closed_all_, DramCommand::Kind::kPrechargeAll, -1, -1});
    refreshed_ = free_from(std::max(closed_all_ + dram_.tRP_all, closed + dram_.tRP));
    issue({refreshed_, DramCommand::Kind::kRefresh, -1, -1});
  }

  const Bank& bank(int64_t index) const { return banks_[static_cast<size_t>(index)]; }

  void finish() {
    if (log_ == nullptr) return;
    std::stable_sort(log_->begin(), log_->end(),
                     [](const DramCommand& a, const DramCommand& b) { return a.cycle < b.cycle; });
  }

  /// Forgets which cycles before this one have a command.
  void forget_before(int64_t cycle) { used_.erase(used_.begin(), used_.lower_bound(cycle)); }
  /// Keeps a cycle free for a read.
  void reserve(int64_t cycle) { used_.insert(cycle); }
  void release(int64_t cycle) { used_.erase(cycle); }

 private:
  Bank& at(int64_t bank) { return banks_[static_cast<size_t>(bank)]; }

  /// The first cycle from here on in which no other command is on the way to the channel.
  int64_t free_from(int64_t cycle) const {
    while (used_.count(cycle) != 0) ++cycle;
    return cycle;
  }

  void issue(const DramCommand& command) {
    used_.insert(command.cycle);
    if (log_ != nullptr) log_->push_back(command);
  }

  const Dram& dram_;
  std::vector<DramCommand>* log_;
  std::vector<Bank> banks_;
  std::array<int64_t, 4> activations_{kNever, kNever, kNever, kNever};
  int64_t refreshed_ = kNever;
  int64_t closed_all_ = kNever;
  std::set<int64_t> used_;
};

}  // namespace

DramStream stream_reads(const Dram& dram, int64_t bursts, std::vector<DramCommand>* log) {
  Channel channel(dram, log);
  const int64_t groups = dram.bank_groups;
  const int64_t turn_bursts = groups * dram.bursts_per_row();
  const auto bank_of = [&](int64_t turn, int64_t group) {
    return group * dram.banks_per_group + turn % dram.banks_per_group;
  };
  const auto row_of = [&](int64_t turn) { return turn / dram.banks_per_group; };
  const auto open = [&](int64_t turn, int64_t from) {
    for (int64_t group = 0; group < groups; ++group) {
      if (channel.bank(bank_of(turn, group)).row != row_of(turn)) {
        channel.activate(bank_of(turn, group), row_of(turn), from);
      }
    }
  };

  DramStream stream;
  int64_t due = dram.tREFI;
  for (int64_t done = 0, turn = 0; done < bursts; ++turn) {
    if (turn > 0 && stream.last_read + dram.pace() >= due) {
      channel.refresh();
      ++stream.refreshes;
      due += dram.tREFI;
    }
    open(turn, 0);
    const int64_t count = std::min(turn_bursts, bursts - done);
    // The reads come first, so that the commands around them take the cycles between.
    int64_t first = 0;
    for (int64_t i = 0; i < count; ++i) {
      stream.last_read = channel.read(bank_of(turn, i % groups));
      if (i == 0) first = stream.last_read;
    }
    if (done == 0) stream.first_read = first;
    done += count;
    if (done < bursts) {
      // The next turn's first read keeps its cycle.
      const int64_t next = stream.last_read + dram.pace();
      channel.reserve(next);
      if (turn > 0) {
        for (int64_t group = 0; group < groups; ++group) channel.precharge(bank_of(turn - 1, group));
      }
      for (int64_t group = 0; group < groups; ++group) {
        channel.activate(bank_of(turn + 1, group), row_of(turn + 1), first);
      }
      channel.release(next);
    }
    channel.forget_before(first);
  }
  stream.end = stream.last_read + dram.tCL + dram.burst_cycles();
  channel.finish();
  return stream;
}

}  // namespace verbatim::accelerator
