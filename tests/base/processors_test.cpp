#include "base/processors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace verbatim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A made-up machine: the texts of the files that it has.
class Machine {
 public:
  Machine& file(const std::string& path, const std::string& text) {
    files_[path] = text;
    return *this;
  }
  Machine& processor(int number, const std::string& name, const std::string& text) {
    return file("/sys/devices/system/cpu/cpu" + std::to_string(number) + "/" + name, text + "\n");
  }
  /// Gives a processor its siblings on the same core.
  Machine& siblings(int number, const std::string& list) {
    return processor(number, "topology/thread_siblings_list", list);
  }
  Processors describe(const std::vector<int>& allowed) const {
    return describe_processors(allowed, [&](const std::string& path) {
      const auto found = files_.find(path);
      return found == files_.end() ? std::string() : found->second;
    });
  }
  ThreadChoice choose(const std::vector<int>& allowed) const { return choose_threads(describe(allowed)); }

 private:
  std::map<std::string, std::string> files_;
};

std::vector<int> up_to(int count) {
  std::vector<int> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// Six fast cores with two hardware threads each, then eight slow ones with one.
Machine laptop() {
  Machine machine;
  for (int i = 0; i < 20; ++i) {
    const bool fast = i < 12;
    machine.siblings(
        i, fast ? std::to_string(i / 2 * 2) + "-" + std::to_string(i / 2 * 2 + 1) : std::to_string(i));
    machine.processor(i, "cpufreq/cpuinfo_max_freq", fast ? "4800000" : "3500000");
  }
  return machine;
}

/// Two sockets of sixteen cores; the second hardware threads come after all of the first.
Machine server() {
  Machine machine;
  for (int i = 0; i < 64; ++i) {
    machine.siblings(i, std::to_string(i % 32) + "," + std::to_string(i % 32 + 32));
    machine.processor(i, "topology/physical_package_id", i % 32 < 16 ? "0" : "1");
  }
  machine.file("/sys/devices/system/node/online", "0-1\n");
  machine.file("/sys/devices/system/node/node0/cpulist", "0-15,32-47\n");
  machine.file("/sys/devices/system/node/node1/cpulist", "16-31,48-63\n");
  return machine;
}

TEST(Processors, CountsOneThreadForEveryCoreOfALaptopWithFastAndSlowOnes) {
  const ThreadChoice choice = laptop().choose(up_to(20));
  EXPECT_EQ(choice.threads, 14);
  EXPECT_EQ(choice.reason, "14 physical cores with 20 hardware threads, 8 of them slower");
}

TEST(Processors, LeavesOutCoresThatAreLessThanHalfAsFast) {
  Machine phone;
  for (int i = 0; i < 8; ++i) phone.processor(i, "cpu_capacity", i < 4 ? "250" : i < 7 ? "700" : "1024");
  const ThreadChoice choice = phone.choose(up_to(8));
  EXPECT_EQ(choice.threads, 4);
  EXPECT_THAT(choice.reason, HasSubstr("4 less than half as fast and left out"));
  EXPECT_EQ(phone.choose({0, 1}).threads, 2);  // the fastest that it may run on
}

TEST(Processors, KnowsSlowCoresThatOnlyTheirListNames) {
  Machine machine;
  machine.file("/sys/devices/cpu_core/cpus", "0-3\n").file("/sys/devices/cpu_atom/cpus", "4-7\n");
  EXPECT_EQ(machine.describe(up_to(8)).slow_cores, 4);
  EXPECT_EQ(machine.choose(up_to(8)).threads, 8);
  EXPECT_EQ(machine.describe({4, 5}).slow_cores, 0);
}

TEST(Processors, CountsTheCoresOfTwoSockets) {
  const ThreadChoice choice = server().choose(up_to(64));
  EXPECT_EQ(choice.threads, 32);
  EXPECT_EQ(choice.reason, "32 physical cores with 64 hardware threads on 2 NUMA nodes");
}

TEST(Processors, CountsOnlyWhatTheAffinityMaskAllows) {
  const ThreadChoice three = server().choose({3, 4, 35});  // 3 and 35 are one core
  EXPECT_EQ(three.threads, 2);
  EXPECT_EQ(three.reason, "2 physical cores with 3 hardware threads");
  EXPECT_EQ(server().choose({5}).threads, 1);
  EXPECT_EQ(server().choose({5}).reason, "1 physical core");
  EXPECT_EQ(server().choose({5, 16, 40}).threads, 3);
}

TEST(Processors, TellsCoresApartBySocketAndNumberWithoutListsOfSiblings) {
  Machine machine;
  for (int i = 0; i < 8; ++i) {
    machine.processor(i, "topology/physical_package_id", std::to_string(i / 4));
    machine.processor(i, "topology/core_id", std::to_string(i % 2));
  }
  EXPECT_EQ(machine.choose(up_to(8)).threads, 4);
}

TEST(Processors, TakesEveryProcessorForACoreWhereNothingIsShown) {
  const ThreadChoice choice = Machine().choose(up_to(6));
  EXPECT_EQ(choice.threads, 6);
  EXPECT_EQ(choice.reason, "6 physical cores");
  EXPECT_EQ(Machine().choose({}).threads, 1);
}

TEST(Processors, KeepsToTheQuotaOfAContainer) {
  const auto with_quota = [](const std::string& limit) {
    Machine machine;
    machine.file("/proc/self/cgroup", "0::/\n").file("/sys/fs/cgroup/cpu.max", limit);
    return machine.choose(up_to(8));
  };
  EXPECT_EQ(with_quota("150000 100000\n").threads, 2);
  EXPECT_EQ(with_quota("150000 100000\n").reason,
            "8 physical cores, but time for 1.5 by the quota of the control group");
  EXPECT_EQ(with_quota("140000 100000\n").threads, 1);
  EXPECT_EQ(with_quota("5000 100000\n").threads, 1);
  EXPECT_EQ(with_quota("400000 100000\n").threads, 4);
  EXPECT_EQ(with_quota("max 100000\n").threads, 8);
  EXPECT_EQ(with_quota("1600000 100000\n").threads, 8);
  EXPECT_THAT(with_quota("1600000 100000\n").reason, Not(HasSubstr("quota")));
}

TEST(Processors, TakesTheLeastQuotaOfTheGroupsAboveItsOwn) {
  Machine machine;
  machine.file("/proc/self/cgroup", "0::/user.slice/session.scope\n");
  machine.file("/sys/fs/cgroup/user.slice/session.scope/cpu.max", "max 100000\n");
  machine.file("/sys/fs/cgroup/user.slice/cpu.max", "600000 200000\n");
  EXPECT_EQ(machine.choose(up_to(8)).threads, 3);
  machine.file("/sys/fs/cgroup/user.slice/session.scope/cpu.max", "200000 100000\n");
  EXPECT_EQ(machine.choose(up_to(8)).threads, 2);
}

TEST(Processors, ReadsTheQuotasOfVersionOne) {
  Machine machine;
  machine.file("/proc/self/cgroup", "9:memory:/pod\n4:cpu,cpuacct:/pod/box\n0::/\n");
  machine.file("/sys/fs/cgroup/cpu,cpuacct/pod/box/cpu.cfs_quota_us", "-1\n");
  machine.file("/sys/fs/cgroup/cpu,cpuacct/pod/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(machine.choose(up_to(8)).threads, 8);
  machine.file("/sys/fs/cgroup/cpu,cpuacct/pod/cpu.cfs_quota_us", "250000\n");
  machine.file("/sys/fs/cgroup/cpu,cpuacct/pod/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(machine.choose(up_to(8)).threads, 3);
}

TEST(Processors, PassesOverFilesThatMakeNoSense) {
  const std::vector<std::string> nonsense = {"",
                                             "\n",
                                             "-",
                                             ",",
                                             "-5",
                                             "3-1",
                                             "0-",
                                             "x",
                                             "0-3-5",
                                             "1,,2",
                                             " ",
                                             "0x10",
                                             "1e9",
                                             "::",
                                             "max max",
                                             "0",
                                             "0-99999999999999999999",
                                             "0-999999999",
                                             "0 0",
                                             "7 0",
                                             std::string(1000, '/'),
                                             std::string("\0\0", 2)};
  for (const std::string& text : nonsense) {
    Machine machine;
    machine.file("/proc/self/cgroup", "0::/a/b\n").file("/sys/fs/cgroup/a/cpu.max", text);
    machine.file("/sys/devices/cpu_atom/cpus", text).file("/sys/devices/system/node/online", text);
    machine.file("/sys/devices/system/node/node0/cpulist", text);
    for (int i = 0; i < 4; ++i) {
      machine.processor(i, "topology/physical_package_id", "nothing");
      // Zero is a sibling of processor 0 alone.
      machine.siblings(i, text).processor(i, "cpufreq/cpuinfo_max_freq", text);
    }
    const ThreadChoice choice = machine.choose(up_to(4));
    EXPECT_EQ(choice.threads, 4) << text;
    machine.file("/proc/self/cgroup", text + "\n" + text);
    EXPECT_EQ(machine.choose(up_to(4)).threads, 4) << text;
  }
}

TEST(Processors, IgnoresSpeedsThatNotAllProcessorsShow) {
  Machine machine = laptop();
  machine.processor(3, "cpufreq/cpuinfo_max_freq", "unknown");
  EXPECT_EQ(machine.describe(up_to(20)).slow_cores, 0);
}

TEST(Processors, ChoosesAtLeastOneThreadHere) {
  const Processors here = describe_processors();
  EXPECT_GE(here.allowed, here.cores);
  EXPECT_GE(here.cores, 1);
  EXPECT_GE(hardware_threads(), 1);
  EXPECT_LE(hardware_threads(), here.cores);
  EXPECT_FALSE(choose_threads(here).reason.empty());
}

}  // namespace
}  // namespace verbatim
