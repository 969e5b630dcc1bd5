#include "base/available_memory.h"

#include <gtest/gtest.h>

#include "support/test_data.h"

namespace verbatim {
namespace {

TEST(AvailableMemory, IsWhatTheMachineSaysAtMost) {
  EXPECT_EQ(
      meminfo_available("MemTotal:       24689444 kB\nMemFree:   100 kB\nMemAvailable:   17000000 kB\n"),
      int64_t{17000000} * 1024);
  EXPECT_EQ(meminfo_available("MemTotal:       24689444 kB\n"), std::nullopt);
  EXPECT_EQ(meminfo_available("MemAvailable: much\n"), std::nullopt);
  EXPECT_EQ(meminfo_available(""), std::nullopt);
  const std::optional<int64_t> here = available_memory();
  EXPECT_GT(here.value_or(1), 0);
}

TEST(AvailableMemory, ALimitOfAGroupOrOneAroundItCounts) {
  const test::TemporaryFolder mount;
  const auto group = [&](const std::string& path, const std::string& limit, const std::string& usage) {
    std::filesystem::create_directories(mount.path() / path);
    mount.write(path + "/memory.max", limit + "\n");
    mount.write(path + "/memory.current", usage + "\n");
    mount.write(path + "/memory.stat", "anon 5\ninactive_file 30\nactive_file 20\n");
  };
  group("outer", "1000", "600");
  group("outer/inner", "max", "400");
  EXPECT_EQ(control_group_room("0::/outer/inner\n", mount.path()), 450);
  group("outer/inner", "500", "400");
  EXPECT_EQ(control_group_room("0::/outer/inner\n", mount.path()), 150);
  EXPECT_EQ(control_group_room("0::/outer/inner", mount.path()), 150);
  // In a container the path may begin above what is mounted.
  EXPECT_EQ(control_group_room("0::/outer/not/there\n", mount.path()), 450);
  EXPECT_EQ(control_group_room("0::/\n", mount.path()), std::nullopt);
  // Nothing is left, and never less than that.
  group("outer/inner", "500", "700");
  EXPECT_EQ(control_group_room("0::/outer/inner\n", mount.path()), 0);
}

TEST(AvailableMemory, BothVersionsOfControlGroupsAreUnderstood) {
  const test::TemporaryFolder mount;
  std::filesystem::create_directories(mount.path() / "memory/job");
  mount.write("memory/job/memory.limit_in_bytes", "1000\n");
  mount.write("memory/job/memory.usage_in_bytes", "800\n");
  mount.write("memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 100\ntotal_active_file 50\n");
  mount.write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  mount.write("memory/memory.usage_in_bytes", "5\n");
  const std::string groups = "9:name=systemd:/\n4:cpuset,memory:/job\n0::/\n";
  EXPECT_EQ(control_group_room(groups, mount.path()), 350);
  EXPECT_EQ(control_group_room("4:memory:/\n0::/\n", mount.path()), std::nullopt);
  EXPECT_EQ(control_group_room("nonsense\n:\n\n", mount.path()), std::nullopt);
}

}  // namespace
}  // namespace verbatim
