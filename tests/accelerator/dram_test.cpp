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

}  // namespace
}  // namespace verbatim::accelerator
