#include "accelerator/dram/log_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace verbatim::accelerator {

namespace {

using Kind = DramCommand::Kind;

enum class Scope { kBank, kGroup, kChannel };

/// A least distance between two commands.
struct Rule {
  const char* name;
  Kind before;
  Kind after;
  Scope scope;
  int64_t cycles;
};

std::vector<Rule> rules_of(const Dram& dram) {
  const int64_t burst = dram.burst_length / dram.beats_per_clock;
  const int64_t write = dram.tCWL + burst;  // from a write to the end of its data
  return {
      {"tRC", Kind::kActivate, Kind::kActivate, Scope::kBank, dram.tRC},
      {"tRRD_L", Kind::kActivate, Kind::kActivate, Scope::kGroup, dram.tRRD_L},
      {"tRRD_S", Kind::kActivate, Kind::kActivate, Scope::kChannel, dram.tRRD_S},
      {"tRCD", Kind::kActivate, Kind::kRead, Scope::kBank, dram.tRCD},
      {"tRCD", Kind::kActivate, Kind::kWrite, Scope::kBank, dram.tRCD},
      {"tRAS", Kind::kActivate, Kind::kPrecharge, Scope::kBank, dram.tRAS},
      {"tRAS", Kind::kActivate, Kind::kPrechargeAll, Scope::kChannel, dram.tRAS},
      {"tRP", Kind::kPrecharge, Kind::kActivate, Scope::kBank, dram.tRP},
      {"tRP", Kind::kPrecharge, Kind::kRefresh, Scope::kChannel, dram.tRP},
      {"tRP_all", Kind::kPrechargeAll, Kind::kActivate, Scope::kChannel, dram.tRP_all},
      {"tRP_all", Kind::kPrechargeAll, Kind::kRefresh, Scope::kChannel, dram.tRP_all},
      {"tRFC", Kind::kRefresh, Kind::kActivate, Scope::kChannel, dram.tRFC},
      {"tRFC", Kind::kRefresh, Kind::kRefresh, Scope::kChannel, dram.tRFC},
      {"tRTP", Kind::kRead, Kind::kPrecharge, Scope::kBank, dram.tRTP},
      {"tRTP", Kind::kRead, Kind::kPrechargeAll, Scope::kChannel, dram.tRTP},
      {"tWR", Kind::kWrite, Kind::kPrecharge, Scope::kBank, write + dram.tWR},
      {"tWR", Kind::kWrite, Kind::kPrechargeAll, Scope::kChannel, write + dram.tWR},
      {"tCCD_L", Kind::kRead, Kind::kRead, Scope::kGroup, dram.tCCD_L},
      {"tCCD_S", Kind::kRead, Kind::kRead, Scope::kChannel, std::max(dram.tCCD_S, burst)},
      {"tCCD_L", Kind::kWrite, Kind::kWrite, Scope::kGroup, dram.tCCD_L},
      {"tCCD_S", Kind::kWrite, Kind::kWrite, Scope::kChannel, std::max(dram.tCCD_S, burst)},
      {"tWTR_L", Kind::kWrite, Kind::kRead, Scope::kGroup, write + dram.tWTR_L},
      {"tWTR_S", Kind::kWrite, Kind::kRead, Scope::kChannel, write + dram.tWTR_S},
      {"read to write", Kind::kRead, Kind::kWrite, Scope::kChannel, dram.tCL + burst + 2 - dram.tCWL},
  };
}

const char* name_of(Kind kind) {
  constexpr const char* kNames[] = {"activate", "read", "write", "precharge", "precharge all", "refresh"};
  return kNames[static_cast<int>(kind)];
}

/// The state of the replay.
class Replay {
 public:
  Replay(const Dram& dram, int64_t postponed) : dram_(dram), postponed_(postponed), rules_(rules_of(dram)) {}

  std::optional<std::string> take(const DramCommand& command, size_t index) {
    const auto fault = [&](const std::string& what) {
      return fmt::format("command {} ({} in cycle {}): {}", index, name_of(command.kind), command.cycle,
                         what);
    };
    if (index > 0 && command.cycle <= last_) return fault("comes with or before the one before it");
    last_ = command.cycle;
    const bool one_bank = command.kind != Kind::kPrechargeAll && command.kind != Kind::kRefresh;
    if (one_bank && (command.bank < 0 || command.bank >= dram_.banks()))
      return fault("there is no such bank");
    for (const Rule& rule : rules_) {
      if (rule.after != command.kind) continue;
      const auto before = latest(rule, command);
      if (before && command.cycle - *before < rule.cycles) {
        return fault(fmt::format("{} is {} cycles, and {} have passed", rule.name, rule.cycles,
                                 command.cycle - *before));
      }
    }
    if (const auto wrong = change_state(command)) return fault(*wrong);
    const int64_t group = one_bank ? command.bank / dram_.banks_per_group : -1;
    seen_[{command.kind, Scope::kBank, command.bank}] = command.cycle;
    seen_[{command.kind, Scope::kGroup, group}] = command.cycle;
    seen_[{command.kind, Scope::kChannel, 0}] = command.cycle;
    return std::nullopt;
  }

  /// Whether enough refreshes came up to a cycle.
  std::optional<std::string> check_refreshes(int64_t cycle) const {
    if (refreshes_ + postponed_ >= cycle / dram_.tREFI) return std::nullopt;
    return fmt::format("tREFI is {} cycles, and by cycle {} there were {} refreshes", dram_.tREFI, cycle,
                       refreshes_);
  }

 private:
  std::optional<int64_t> latest(const Rule& rule, const DramCommand& command) const {
    int64_t place = 0;
    if (rule.scope == Scope::kBank) place = command.bank;
    if (rule.scope == Scope::kGroup) place = command.bank / dram_.banks_per_group;
    const auto found = seen_.find({rule.before, rule.scope, place});
    return found == seen_.end() ? std::nullopt : std::optional(found->second);
  }

  std::optional<std::string> change_state(const DramCommand& command) {
    switch (command.kind) {
      case Kind::kActivate: {
        if (open_.count(command.bank) != 0) return "the bank is open";
        if (activations_.size() >= 4) {
          const int64_t window = command.cycle - activations_[activations_.size() - 4];
          if (window < dram_.tFAW) {
            return fmt::format("tFAW is {} cycles, and five activations take {}", dram_.tFAW, window);
          }
        }
        activations_.push_back(command.cycle);
        open_[command.bank] = command.row;
        return std::nullopt;
      }
      case Kind::kRead:
      case Kind::kWrite: {
        const auto found = open_.find(command.bank);
        if (found == open_.end()) return "the bank is closed";
        if (found->second != command.row) return "another row is open";
        return std::nullopt;
      }
      case Kind::kPrecharge:
        if (open_.erase(command.bank) == 0) return "the bank is closed";
        return std::nullopt;
      case Kind::kPrechargeAll:
        open_.clear();
        return std::nullopt;
      case Kind::kRefresh:
        if (!open_.empty()) return "a bank is open";
        ++refreshes_;
        return check_refreshes(command.cycle);
    }
    return "is no command";
  }

  using Place = std::tuple<Kind, Scope, int64_t>;

  const Dram& dram_;
  int64_t postponed_;
  std::vector<Rule> rules_;
  std::map<Place, int64_t> seen_;     // the latest of each kind
  std::map<int64_t, int64_t> open_;   // the rows of open banks
  std::vector<int64_t> activations_;  // all of them
  int64_t refreshes_ = 0;
  int64_t last_ = 0;
};

}  // namespace

std::optional<std::string> first_fault(const Dram& dram, const std::vector<DramCommand>& log,
                                       int64_t postponed) {
  Replay replay(dram, postponed);
  for (size_t i = 0; i < log.size(); ++i) {
    if (auto fault = replay.take(log[i], i)) return fault;
  }
  return log.empty() ? std::nullopt : replay.check_refreshes(log.back().cycle);
}

}  // namespace verbatim::accelerator
