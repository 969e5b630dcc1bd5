#include <gtest/gtest.h>

#include "Array.h"
#include "ArrayWithBugs.h"
#include "rtl/array_driver.h"

namespace verbatim::accelerator {
namespace {

constexpr int kProducts = 300;

TEST(ArrayInRtl, TakesTheCyclesOfTheSimulatorAndGivesTheModelsResults) {
  std::mt19937_64 random(24);
  const test::ArraySizes sizes;
  Array array;
  int64_t difference = 0;
  int64_t cycles = 0;
  int64_t stalled = 0;
  for (int i = 0; i < kProducts; ++i) {
    const test::ArrayCase one = test::random_case(random);
    const test::ArrayData data = test::random_data(one, random);
    const test::ArrayRun run = test::run_array(array, sizes, one, data);
    const int64_t simulated = test::simulated_cycles(sizes, one);
    EXPECT_EQ(run.cycles, simulated) << "product " << i << ": " << one.rows << " rows, " << one.outputs
                                     << " x " << one.inputs << ", draft " << one.draft << ", single "
                                     << one.single << ", blocks " << one.block_outputs << " x "
                                     << one.block_inputs << ", drain " << one.passes << " times after "
                                     << one.drain_latency << ", memory " << one.pace << ", " << one.outage
                                     << " of " << one.interval << ", " << one.latency;
    EXPECT_EQ(run.results, test::expected_results(one, data)) << "product " << i;
    difference += std::abs(run.cycles - simulated);
    cycles += run.cycles;
    stalled += run.stalled;
  }
  EXPECT_EQ(difference, 0);
  EXPECT_GT(stalled, cycles / 20);
  RecordProperty("cycles", std::to_string(cycles));
}

TEST(ArrayInRtl, IsSeenToDifferWithABugInItsSequencerAndOneInItsSums) {
  std::mt19937_64 random(24);
  const test::ArraySizes sizes;
  ArrayWithBugs array;
  int other_cycles = 0;
  int other_results = 0;  // of those that never wait, to which the bug in the sequencer does nothing
  for (int i = 0; i < kProducts && (other_cycles == 0 || other_results == 0); ++i) {
    const test::ArrayCase one = test::random_case(random);
    const test::ArrayData data = test::random_data(one, random);
    const test::ArrayRun run = test::run_array(array, sizes, one, data);
    const bool one_column = one.outputs <= one.block_outputs;
    other_cycles += run.cycles == test::simulated_cycles(sizes, one) ? 0 : 1;
    other_results += one_column && run.results != test::expected_results(one, data) ? 1 : 0;
  }
  EXPECT_GT(other_cycles, 0);
  EXPECT_GT(other_results, 0);
}

TEST(ArrayInRtl, EndsWhereNothingIsDrained) {
  std::mt19937_64 random(25);
  const test::ArraySizes sizes;
  Array array;
  for (const int64_t latency : {0, 1, 7}) {
    test::ArrayCase one{.rows = 2, .outputs = 5, .inputs = 128, .block_outputs = 2, .passes = 0};
    one.drain_latency = latency;
    const test::ArrayRun run = test::run_array(array, sizes, one, test::random_data(one, random));
    EXPECT_LT(run.cycles, 10'000) << latency;
  }
}

}  // namespace
}  // namespace verbatim::accelerator
