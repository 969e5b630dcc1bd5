#include "stop_signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <thread>

namespace verbatim {
namespace {

/// What a server does that takes long to end: it stops at the first signal, and gets another one afterwards.
[[noreturn]] void end_slowly(int first, int then) {
  app::StopSignals signals;
  std::promise<void> stopped;
  signals.on_signal([&stopped] { stopped.set_value(); });
  kill(getpid(), first);
  stopped.get_future().wait();
  signals.end_at_once();
  kill(getpid(), then);
  std::this_thread::sleep_for(std::chrono::minutes(2));
  _exit(99);
}

TEST(StopSignalsDeathTest, EndTheProgramAtOnceWhileItEndsSlowly) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(end_slowly(SIGINT, SIGTERM), testing::ExitedWithCode(130), "");
  EXPECT_EXIT(end_slowly(SIGTERM, SIGINT), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(end_slowly(SIGTERM, SIGTERM), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace verbatim
