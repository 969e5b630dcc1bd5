#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "accelerator/dram/bank_model.h"
#include "accelerator/dram/log_checker.h"
#include "accelerator/dram/service.h"

namespace verbatim::accelerator {
namespace {

using Kind = DramCommand::Kind;
using ::testing::HasSubstr;

class EveryMemory : public ::testing::TestWithParam<std::string> {
 protected:
  const Dram dram_ = load_dram(GetParam());
};

INSTANTIATE_TEST_SUITE_P(BuiltIn, EveryMemory, ::testing::ValuesIn(dram_names()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST_P(EveryMemory, StreamsAsTheClosedFormSays) {
  std::mt19937_64 random(7);
  std::vector<int64_t> lengths;
  for (int64_t bursts = 0; bursts < 12; ++bursts) lengths.push_back(bursts);
  for (int i = 0; i < 25; ++i) lengths.push_back(static_cast<int64_t>(random() % 60'000));
  for (const int64_t bursts : lengths) {
    EXPECT_EQ(bursts == 0 ? 0 : stream_reads(dram_, bursts).end, closed_form_cycles(dram_, bursts)) << bursts;
  }
}

TEST_P(EveryMemory, WritesLogsThatTheCheckerAccepts) {
  std::vector<DramCommand> log;
  const DramStream stream = stream_reads(dram_, 20'000, &log);
  EXPECT_GE(stream.refreshes, 3);
  EXPECT_EQ(first_fault(dram_, log), std::nullopt);
  EXPECT_EQ(std::count_if(log.begin(), log.end(), [](const auto& one) { return one.kind == Kind::kRead; }),
            20'000);
}

/// The kind of the next command that a bank takes part in.
Kind next_of_bank(const std::vector<DramCommand>& log, size_t index) {
  for (size_t i = index + 1; i < log.size(); ++i) {
    if (log[i].bank == log[index].bank || log[i].kind == Kind::kPrechargeAll) return log[i].kind;
  }
  return Kind::kPrechargeAll;
}

TEST_P(EveryMemory, WritesLogsThatTheCheckerRejectsOnceChanged) {
  std::vector<DramCommand> log;
  stream_reads(dram_, 6'000, &log);
  std::mt19937_64 random(11);
  for (int i = 0; i < 150; ++i) {
    std::vector<DramCommand> changed = log;
    const size_t at = random() % log.size();
    DramCommand& one = changed[at];
    const Kind kind = one.kind;
    // A bank that is not used before all are closed may be open or closed, with any row.
    const bool unused =
        (kind == Kind::kActivate || kind == Kind::kPrecharge) && next_of_bank(log, at) == Kind::kPrechargeAll;
    if (unused) continue;
    if (i % 2 == 0 && kind != Kind::kRead) {
      changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(at));
    } else if (kind == Kind::kRead) {
      one.row += i % 4 < 2 ? 1 : 0;
      one.cycle -= i % 4 < 2 ? 0 : 1;
    } else if (kind == Kind::kActivate) {
      one.row += 1;
    } else {
      one.cycle -= dram_.tREFI / 2;
      std::stable_sort(changed.begin(), changed.end(),
                       [](const auto& a, const auto& b) { return a.cycle < b.cycle; });
    }
    EXPECT_NE(first_fault(dram_, changed), std::nullopt)
        << "change " << i << " of command " << at << ", kind " << static_cast<int>(kind);
  }
}

TEST_P(EveryMemory, ServesTheCycleModelAsItsBanksDo) {
  const DramService service = service_of(dram_);
  const int64_t turn = dram_.bank_groups * dram_.bursts_per_row() * dram_.pace() * dram_.clock_ps;
  for (const int64_t bursts : {1, 1'000, 20'000, 100'000}) {
    const int64_t banks = stream_reads(dram_, bursts).end * dram_.clock_ps;
    const int64_t served =
        service.finish(service.outage_ps, service.transfer_ps(bursts * service.burst_bytes)) +
        service.latency_ps - service.outage_ps;
    EXPECT_LE(std::abs(banks - served), service.outage_ps + turn) << bursts;
  }
}

TEST(DdrFour, KeepsWhatRefreshLeaves) {
  EXPECT_NEAR(refresh_leaves(load_dram("ddr4-3200")), 1 - 350.0 / 7800.0, 1e-12);
  EXPECT_NEAR(refresh_leaves(load_dram("ddr4-3200")), 0.955, 5e-4);
}

TEST(Service, NeverEndsEarlierForALaterStartOrALongerTransfer) {
  const DramService service = service_of(load_dram("lpddr5-6400"));
  std::mt19937_64 random(3);
  for (int i = 0; i < 20'000; ++i) {
    const auto start = static_cast<int64_t>(random() % 20'000'000);
    const auto transfer = static_cast<int64_t>(random() % 20'000'000);
    const int64_t end = service.finish(start, transfer);
    EXPECT_GE(end, start + transfer);
    EXPECT_GE(service.finish(start + 1 + static_cast<int64_t>(random() % 1'000'000), transfer), end);
    EXPECT_GE(service.finish(start, transfer + 1), end);
  }
}

/// A small log that keeps all rules, for changes that reads alone do not show.
std::vector<DramCommand> log_with_writes(const Dram& dram) {
  const int64_t write = dram.tRCD;
  const int64_t read = write + dram.tCWL + dram.burst_cycles() + dram.tWTR_L;
  const int64_t close =
      std::max({dram.tRAS, read + dram.tRTP, write + dram.tCWL + dram.burst_cycles() + dram.tWR});
  return {{0, Kind::kActivate, 0, 5},
          {write, Kind::kWrite, 0, 5},
          {read, Kind::kRead, 0, 5},
          {close, Kind::kPrecharge, 0, -1},
          {std::max(close + dram.tRP, dram.tRC), Kind::kActivate, 0, 6}};
}

TEST(LogChecker, NamesTheRuleThatIsBroken) {
  const Dram dram = load_dram("ddr4-3200");
  const std::vector<DramCommand> good = log_with_writes(dram);
  EXPECT_EQ(first_fault(dram, good), std::nullopt);
  const auto fault = [&](size_t index, int64_t earlier) {
    std::vector<DramCommand> log = good;
    log[index].cycle -= earlier;
    return first_fault(dram, log).value_or("none");
  };
  EXPECT_THAT(fault(1, 1), HasSubstr("command 1 (write in cycle 21): tRCD is 22 cycles, and 21 have passed"));
  EXPECT_THAT(fault(2, 1), HasSubstr("tWTR_L"));
  EXPECT_THAT(fault(3, 1), HasSubstr("tRTP"));
  EXPECT_THAT(fault(4, 1), HasSubstr("tRP"));

  const auto rejects = [&](std::vector<DramCommand> log, const char* part) {
    EXPECT_THAT(first_fault(dram, log).value_or("none"), HasSubstr(part));
  };
  rejects({{0, Kind::kRead, 0, 0}}, "the bank is closed");
  rejects({{0, Kind::kActivate, 99, 0}}, "no such bank");
  rejects({{0, Kind::kActivate, 0, 0}, {1000, Kind::kActivate, 0, 0}}, "the bank is open");
  rejects({{0, Kind::kActivate, 0, 0}, {1000, Kind::kRefresh, -1, -1}}, "a bank is open");
  rejects({{0, Kind::kActivate, 0, 0}, {0, Kind::kActivate, 4, 0}}, "with or before");
  rejects({{0, Kind::kActivate, 0, 0},
           {8, Kind::kActivate, 4, 0},
           {16, Kind::kActivate, 8, 0},
           {24, Kind::kActivate, 12, 0},
           {33, Kind::kActivate, 1, 0}},
          "tFAW is 34 cycles, and five activations take 33");
  rejects({{0, Kind::kActivate, 0, 0}, {2 * dram.tREFI, Kind::kRead, 0, 0}}, "tREFI");
}

/// A least distance of the checker's, with commands before the two that it is between so that their banks are
/// open or closed as they have to be.
struct Distance {
  const char* rule;
  std::vector<DramCommand> before;  ///< the last of them is the one that the distance counts from
  DramCommand after;                ///< without a cycle
  int64_t cycles;
};

constexpr int64_t kLater = 100'000;  // after everything before it, whatever the rule

DramCommand command_at(int64_t cycle, Kind kind, int64_t bank = -1) {
  const bool has_row = kind == Kind::kActivate || kind == Kind::kRead || kind == Kind::kWrite;
  return {cycle, kind, bank, has_row ? 5 : -1};
}

/// A memory in which no rule hides another: all of its distances are far apart.
Dram memory_of_distances() {
  Dram dram = load_dram("ddr4-3200");
  dram.tRRD_S = 40;
  dram.tRRD_L = 60;
  dram.tCCD_S = 10;
  dram.tCCD_L = 14;
  dram.tWTR_S = 11;
  dram.tWTR_L = 17;
  dram.tRP = 25;
  dram.tRP_all = 33;
  dram.tRC = 200;
  dram.tRAS = 80;
  dram.tFAW = 41;
  dram.tREFI = 1'000'000;
  return dram;
}

std::vector<Distance> distances_of(const Dram& dram) {
  const int64_t near = 1;                    // a bank of bank 0's group
  const int64_t far = dram.banks_per_group;  // one of another group
  const int64_t burst = dram.burst_length / dram.beats_per_clock;
  const int64_t written = dram.tCWL + burst;
  const auto open = [](std::initializer_list<int64_t> banks) {
    std::vector<DramCommand> commands;
    for (const int64_t bank : banks) {
      commands.push_back(command_at(1000 * static_cast<int64_t>(commands.size()), Kind::kActivate, bank));
    }
    return commands;
  };
  const auto then = [](std::vector<DramCommand> commands, Kind kind, int64_t bank = -1) {
    commands.push_back(command_at(kLater, kind, bank));
    return commands;
  };
  const auto last = [](Kind kind, int64_t bank = -1) { return command_at(0, kind, bank); };
  const auto closed = [&](std::vector<DramCommand> commands) {
    commands.push_back(command_at(50'000, Kind::kPrechargeAll));
    return commands;
  };
  std::vector<DramCommand> reopened = {command_at(kLater, Kind::kActivate, 0)};
  std::vector<DramCommand> refreshed = {command_at(kLater, Kind::kRefresh)};
  return {
      {"tRRD_L", reopened, last(Kind::kActivate, near), dram.tRRD_L},
      {"tRRD_S", reopened, last(Kind::kActivate, far), dram.tRRD_S},
      {"tRCD", reopened, last(Kind::kRead, 0), dram.tRCD},
      {"tRCD", reopened, last(Kind::kWrite, 0), dram.tRCD},
      {"tRAS", reopened, last(Kind::kPrecharge, 0), dram.tRAS},
      {"tRAS", reopened, last(Kind::kPrechargeAll), dram.tRAS},
      {"tRP", then(open({0}), Kind::kPrecharge, 0), last(Kind::kActivate, 0), dram.tRP},
      {"tRP", then(open({0}), Kind::kPrecharge, 0), last(Kind::kRefresh), dram.tRP},
      {"tRP_all", then(open({0}), Kind::kPrechargeAll), last(Kind::kActivate, far), dram.tRP_all},
      {"tRP_all", then(open({0}), Kind::kPrechargeAll), last(Kind::kRefresh), dram.tRP_all},
      {"tRFC", refreshed, last(Kind::kActivate, far), dram.tRFC},
      {"tRFC", then(closed(open({0})), Kind::kRefresh), last(Kind::kRefresh), dram.tRFC},
      {"tRTP", then(open({0}), Kind::kRead, 0), last(Kind::kPrecharge, 0), dram.tRTP},
      {"tRTP", then(open({0}), Kind::kRead, 0), last(Kind::kPrechargeAll), dram.tRTP},
      {"tWR", then(open({0}), Kind::kWrite, 0), last(Kind::kPrecharge, 0), written + dram.tWR},
      {"tWR", then(open({0}), Kind::kWrite, 0), last(Kind::kPrechargeAll), written + dram.tWR},
      {"tCCD_L", then(open({0, near}), Kind::kRead, 0), last(Kind::kRead, near), dram.tCCD_L},
      {"tCCD_S", then(open({0, far}), Kind::kRead, 0), last(Kind::kRead, far), dram.tCCD_S},
      {"tCCD_L", then(open({0, near}), Kind::kWrite, 0), last(Kind::kWrite, near), dram.tCCD_L},
      {"tCCD_S", then(open({0, far}), Kind::kWrite, 0), last(Kind::kWrite, far), dram.tCCD_S},
      {"tWTR_L", then(open({0, near}), Kind::kWrite, 0), last(Kind::kRead, near), written + dram.tWTR_L},
      {"tWTR_S", then(open({0, far}), Kind::kWrite, 0), last(Kind::kRead, far), written + dram.tWTR_S},
      {"read to write", then(open({0, far}), Kind::kRead, 0), last(Kind::kWrite, far),
       dram.tCL + burst + 2 - dram.tCWL},
  };
}

TEST(LogChecker, KeepsEveryDistanceToTheCycle) {
  const Dram dram = memory_of_distances();
  const std::vector<Distance> distances = distances_of(dram);
  EXPECT_EQ(distances.size(), 23u);  // and tRC, below
  for (size_t i = 0; i < distances.size(); ++i) {
    const Distance& one = distances[i];
    std::vector<DramCommand> log = one.before;
    log.push_back(one.after);
    log.back().cycle = one.before.back().cycle + one.cycles;
    EXPECT_EQ(first_fault(dram, log), std::nullopt) << i << ", " << one.rule;
    --log.back().cycle;
    EXPECT_THAT(
        first_fault(dram, log).value_or("none"),
        HasSubstr(fmt::format(": {} is {} cycles, and {} have passed", one.rule, one.cycles, one.cycles - 1)))
        << i;
  }
}

TEST(LogChecker, KeepsTheDistanceOfTwoActivationsOfABank) {
  const Dram dram = memory_of_distances();
  std::vector<DramCommand> log = {command_at(0, Kind::kActivate, 0),
                                  command_at(dram.tRAS, Kind::kPrecharge, 0),
                                  command_at(dram.tRC, Kind::kActivate, 0)};
  EXPECT_EQ(first_fault(dram, log), std::nullopt);
  --log.back().cycle;
  EXPECT_THAT(first_fault(dram, log).value_or("none"), HasSubstr(": tRC is 200 cycles, and 199 have passed"));
}

}  // namespace
}  // namespace verbatim::accelerator
