#include "verbatim/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbatim {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(Machine, IsDescribedWithTheKernelsThatAreInUse) {
  const MachineReport machine = describe_machine();
  EXPECT_FALSE(machine.cpu.empty());
  EXPECT_GE(machine.threads, 1);
  EXPECT_THAT(machine.threads_reason, HasSubstr("physical core"));
  ASSERT_FALSE(machine.instruction_sets.empty());
  EXPECT_EQ(machine.instruction_sets.front(), "scalar");
  EXPECT_THAT(machine.instruction_sets, Contains(machine.kernels));
}

}  // namespace
}  // namespace verbatim
