#include "agent/net/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>

#include "agent/net/http_client.h"
#include "agent/small_server.h"

namespace verbatim::agent {
namespace process_test {
namespace {

using test::SmallServer;
using ::testing::HasSubstr;
using ::testing::Not;

struct Ended {
  std::string output;
  std::string errors;
  int status = -1;
  double seconds = 0;
};

Ended run(RealLoop& loop, const std::vector<std::string>& command) {
  Ended ended;
  const auto begin = std::chrono::steady_clock::now();
  Process process(loop, {.command = command},
                  {.output = [&](std::string_view piece) { ended.output += piece; },
                   .ended =
                       [&](int status) {
                         ended.status = status;
                         loop.stop();
                       }});
  const uint64_t limit = loop.after(std::chrono::seconds(60), [&] { loop.stop(); });
  loop.run();
  loop.forget(limit);
  ended.errors = process.last_errors();
  ended.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return ended;
}

TEST(Process, GetsNoSocketOfThisProgram) {
  std::atomic<bool> over = false;
  SmallServer server([&](const std::string&, const std::string&, const auto& send) {
    send("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nx");
    while (!over) usleep(1000);
  });
  RealLoop loop;
  const auto call = start_http(loop, {.url = server.url()}, {.body = [&](std::string_view) { loop.stop(); }});
  loop.run();
  const Ended ended = run(loop, {"sh", "-c", "ls -l /proc/$$/fd"});
  over = true;
  EXPECT_THAT(ended.output, HasSubstr("pipe"));
  EXPECT_THAT(ended.output, Not(HasSubstr("socket")));
}

TEST(Process, EndsThoughAnotherProgramKeepsItsOutputOpen) {
  RealLoop loop;
  const Ended ended = run(loop, {"sh", "-c", "setsid sleep 30 & echo ok"});
  EXPECT_EQ(ended.output, "ok\n");
  EXPECT_EQ(ended.status, 0);
  EXPECT_LT(ended.seconds, 20);
}

TEST(Process, IsReadWhileItsOutputGoesOn) {
  RealLoop loop;
  const Ended ended = run(loop, {"sh", "-c", "setsid timeout 30 yes & exit 4"});
  EXPECT_EQ(ended.status, 4);
  EXPECT_LT(ended.seconds, 20);
}

TEST(Process, HasFailedIfItsStatusCannotBeKnown) {
  const auto before = signal(SIGCHLD, SIG_IGN);
  RealLoop loop;
  const Ended ended = run(loop, {"sh", "-c", "false; (exit 3); [ $? = 3 ] && echo seen; exit 5"});
  signal(SIGCHLD, before);
  EXPECT_EQ(ended.output, "seen\n");  // the program's own children are as ever
  EXPECT_EQ(ended.status, 255);
  EXPECT_THAT(ended.errors, HasSubstr("SIGCHLD is ignored"));
}

TEST(Process, KeepsNothingThatNobodyWillRead) {
  RealLoop loop;
  Process process(loop, {.command = {"sleep", "100"}}, {});
  process.write(std::string(1 << 20, 'x'));
  EXPECT_GT(process.unwritten(), 0u);
  process.end_input();
  const size_t before = process.unwritten();
  process.write(std::string(1 << 20, 'x'));
  EXPECT_EQ(process.unwritten(), before);
}

}  // namespace
}  // namespace process_test
}  // namespace verbatim::agent
