#include <gtest/gtest.h>

#include "Array.h"
#include "ArrayWithBug.h"
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

TEST(ArrayInRtl, IsSeenToDifferWithABugInItsSequencer) {
  std::mt19937_64 random(24);
  const test::ArraySizes sizes;
  ArrayWithBug array;
  int others = 0;
  for (int i = 0; i < kProducts && others == 0; ++i) {
    const test::ArrayCase one = test::random_case(random);
    const test::ArrayData data = test::random_data(one, random);
    const test::ArrayRun run = test::run_array(array, sizes, one, data);
    others += run.cycles != test::simulated_cycles(sizes, one) ? 1 : 0;
  }
  EXPECT_GT(others, 0);
}

}  // namespace
}  // namespace verbatim::accelerator
