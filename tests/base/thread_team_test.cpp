#include "base/thread_team.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "verbatim/error.h"

namespace verbatim {
namespace {

// More members than most machines that run this have processors.
constexpr int kLargest = 8;

TEST(ThreadTeam, RunsEveryMemberOnce) {
  for (int size = 1; size <= kLargest; ++size) {
    ThreadTeam team(size);
    EXPECT_EQ(team.size(), size);
    std::vector<int> calls(
        static_cast<size_t>(size));  // plain: run() itself must order the writes and the reads
    for (int i = 1; i <= 500; ++i) {
      team.run([&](int member, int members) {
        EXPECT_EQ(members, size);
        ++calls[static_cast<size_t>(member)];
      });
      ASSERT_EQ(calls, std::vector<int>(calls.size(), i));
    }
  }
}

TEST(ThreadTeam, SurvivesManyRuns) {
  constexpr int kRuns = 100000;
  ThreadTeam team(2);
  int64_t counts[2] = {};
  int64_t sum = 0;
  for (int i = 0; i < kRuns; ++i) {
    team.run([&](int member, int) { counts[member] += i; });
    sum += i;
  }
  EXPECT_EQ(counts[0], sum);
  EXPECT_EQ(counts[1], sum);
}

TEST(ThreadTeam, PassesResultsFromOneRunToTheNext) {
  ThreadTeam team(4);
  std::vector<int> values(4, 1);
  std::vector<int> next(4);
  for (int i = 0; i < 2000; ++i) {
    team.run([&](int member, int size) {
      const auto neighbour = static_cast<size_t>((member + 1) % size);
      next[static_cast<size_t>(member)] = values[neighbour] + 1;
    });
    values.swap(next);
  }
  EXPECT_EQ(values, std::vector<int>(4, 2001));
}

TEST(ThreadTeam, WakesMembersThatSleep) {
  ThreadTeam team(3);
  int calls[3] = {};
  for (int i = 1; i <= 30; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(i % 4));
    team.run([&](int member, int) {
      // Every member in turn makes the others, the caller among them, wait long enough to sleep.
      if (member == i % 3) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      ++calls[member];
    });
    for (const int count : calls) ASSERT_EQ(count, i);
  }
}

// The other members are asleep, or busy with something else, whenever the caller comes.
TEST(ThreadTeam, WaitsForNobodyWhoHasNotBegun) {
  ThreadTeam team(4);
  int calls[4] = {};
  for (int i = 1; i <= 200; ++i) {
    team.run([&](int member, int) { ++calls[member]; });
    for (const int count : calls) ASSERT_EQ(count, i);
    if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

// A member that missed calls, because others took its shares over, must not begin one that is over.
TEST(ThreadTeam, ManyTeamsOnFewProcessorsDoEveryShareOnce) {
  constexpr int kTeams = 6;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kTeams; ++caller) {
    callers.emplace_back([] {
      ThreadTeam team(3);
      std::vector<int64_t> calls(3);
      for (int i = 1; i <= 3000; ++i) {
        team.run([&](int member, int) { ++calls[static_cast<size_t>(member)]; });
        ASSERT_EQ(calls, std::vector<int64_t>(3, i));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(ThreadTeam, EndsAtOnceAndWhileAsleep) {
  for (int i = 0; i < 200; ++i) ThreadTeam team(4);
  ThreadTeam team(4);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

TEST(ThreadTeam, SplitsIntoRangesThatCoverEveryIndexOnce) {
  for (int size = 1; size <= kLargest; ++size) {
    ThreadTeam team(size);
    for (const int64_t count : {0, 1, 2, 3, 7, 8, 9, 16, 63, 64, 1000}) {
      std::vector<int> visits(static_cast<size_t>(count));
      team.split(count, [&](int64_t begin, int64_t end) {
        ASSERT_LT(begin, end);
        for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
      });
      EXPECT_EQ(visits, std::vector<int>(visits.size(), 1)) << count << " among " << size;
    }
  }
}

TEST(ThreadTeam, LeavesASingleIndexToTheCaller) {
  ThreadTeam team(2);
  std::thread::id where;
  team.split(1, [&](int64_t, int64_t) { where = std::this_thread::get_id(); });
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST(ThreadTeam, SplitsIntoBlocksThatCoverEveryIndexOnce) {
  for (int size = 1; size <= kLargest; ++size) {
    ThreadTeam team(size);
    for (const int64_t count : {0, 1, 2, 7, 8, 9, 63, 64, 1000}) {
      for (const int64_t block : {1, 3, 8, 500, 2000}) {
        std::vector<int> visits(static_cast<size_t>(count));  // plain, as the work of a pass is
        team.split(count, block, [&](int member, int64_t begin, int64_t end) {
          ASSERT_GE(member, 0);
          ASSERT_LT(member, size);
          ASSERT_LT(begin, end);
          ASSERT_LE(end - begin, size > 1 ? block : count);
          for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
        });
        ASSERT_EQ(visits, std::vector<int>(visits.size(), 1))
            << count << " in blocks of " << block << " among " << size;
      }
    }
  }
}

// More blocks than fit into the numbers that a part keeps.
TEST(ThreadTeam, SplitsMillionsOfItemsIntoBlocksOfOne) {
  ThreadTeam team(3);
  std::vector<uint8_t> visits(1'000'003);
  team.split(std::ssize(visits), 1, [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
  });
  EXPECT_EQ(visits, std::vector<uint8_t>(visits.size(), 1));
}

// The caller's first block ends only when everything else is done, which others must do.
TEST(ThreadTeam, OthersTakeWhatTheCallerHasNotBegun) {
  ThreadTeam team(3);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> done = 0;
    bool alone = false;
    team.split(60, 1, [&](int member, int64_t, int64_t) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      while (member == 0 && done < 59 && !alone) alone = std::chrono::steady_clock::now() > end;
      ++done;
    });
    ASSERT_FALSE(alone);
    ASSERT_EQ(done, 60);
  }
}

// Whoever begins a block in its turn is held up there; the rest is done meanwhile.
TEST(ThreadTeam, DoesEveryItemOnceWhileMembersAreHeldUp) {
  for (const int size : {2, 3, 5, kLargest}) {
    ThreadTeam team(size);
    std::vector<int> visits(97);
    std::vector<int64_t> by_member(static_cast<size_t>(size));  // scratch memory of each member, plain
    for (int round = 1; round <= 200; ++round) {
      team.split(97, 1 + round % 5, [&](int member, int64_t begin, int64_t end) {
        if (member == round % size && begin % 3 == 0) {
          std::this_thread::sleep_for(std::chrono::microseconds(round % 7 * 50));
        }
        for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
        by_member[static_cast<size_t>(member)] += end - begin;
      });
      ASSERT_EQ(visits, std::vector<int>(97, round)) << size;
      ASSERT_EQ(std::accumulate(by_member.begin(), by_member.end(), int64_t{0}), 97 * round);
    }
  }
}

// Threads that come late find calls that are over, and calls of another shape.
TEST(ThreadTeam, ManyTeamsOnFewProcessorsDoEveryBlockOnce) {
  constexpr int kTeams = 6;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kTeams; ++caller) {
    callers.emplace_back([caller] {
      ThreadTeam team(4);
      std::vector<int> visits(64);
      for (int i = 0; i < 3000; ++i) {
        const int64_t count = 2 + (i + caller) * 7 % 63;
        std::fill(visits.begin(), visits.end(), 0);
        team.split(count, 1 + i % 4, [&](int, int64_t begin, int64_t end) {
          for (int64_t j = begin; j < end; ++j) ++visits[static_cast<size_t>(j)];
        });
        ASSERT_EQ(std::accumulate(visits.begin(), visits.begin() + count, 0), count);
        ASSERT_EQ(*std::max_element(visits.begin(), visits.end()), 1);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(ThreadTeam, BlocksAreWholeGroupsOfItemsThatAreReadInMicroseconds) {
  for (const int64_t multiple : {1, 4, 12, 16}) {
    for (const int64_t bytes : {0, 1, 100, 4096, 100'000, 10'000'000}) {
      const int64_t items = items_per_block(bytes, multiple);
      EXPECT_GE(items, multiple);
      EXPECT_EQ(items % multiple, 0);
      if (items > multiple) {
        EXPECT_LE(items * bytes, 400'000);
        EXPECT_GE(items * bytes, 150'000);
      }
    }
  }
}

TEST(ThreadTeam, RunsTemporaryAndConstantCallables) {
  ThreadTeam team(2);
  std::vector<int> seen(2);
  const auto constant = [&](int member, int) { seen[static_cast<size_t>(member)] += 1; };
  team.run(constant);
  team.run([&](int member, int) mutable { seen[static_cast<size_t>(member)] += 1; });
  EXPECT_EQ(seen, std::vector<int>(2, 2));
}

TEST(ThreadTeam, RefusesImpossibleSizes) {
  EXPECT_THROW(ThreadTeam(0), Error);
  EXPECT_THROW(ThreadTeam(-1), Error);
  EXPECT_THROW(ThreadTeam(100000), Error);
}

}  // namespace
}  // namespace verbatim
