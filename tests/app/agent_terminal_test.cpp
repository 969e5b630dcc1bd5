#ifdef VERBATIM_WITH_AGENT

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "agent/small_server.h"
#include "support/run_program.h"
#include "support/test_data.h"
#include "text_io.h"

namespace verbatim {
namespace {

using test::SmallServer;
using ::testing::HasSubstr;

/// `verbatim agent` on a terminal of its own, with a tool `put` and a server that speaks for the model.
class AgentTerminal : public ::testing::Test {
 protected:
  void start(const std::string& script, const std::string& policy, std::vector<std::string> replies,
             bool json = false) {
    const nlohmann::json tool = {
        {"type", "function"},
        {"function",
         {{"name", "put"},
          {"parameters",
           {{"type", "object"}, {"properties", {{"text", {{"type", "string"}}}}}, {"required", {"text"}}}}}},
        {"command", {"sh", "-c", script}},
        {"settings", {{"policy", policy}}}};
    folder_.write("tools.json", nlohmann::json({{"tools", {tool}}}).dump());
    server_ = std::make_unique<SmallServer>([replies, count = size_t{0}](const std::string&,
                                                                         const std::string&,
                                                                         const auto& send) mutable {
      const std::string reply = replies.at(std::min(count++, replies.size() - 1));
      const nlohmann::json event = {{"choices", {{{"delta", {{"content", reply}}}}}}};
      send(SmallServer::answer(200, "text/event-stream", "data: " + event.dump() + "\n\ndata: [DONE]\n\n"));
    });
    const std::string program = test::program().string();
    const std::string url = server_->url("/v1");
    const std::string tools = (folder_.path() / "tools.json").string();
    const std::vector<const char*> arguments = {program.c_str(),
                                                "agent",
                                                "--endpoint",
                                                url.c_str(),
                                                "--tools",
                                                tools.c_str(),
                                                "-q",
                                                "What?",
                                                json ? "--json" : nullptr,
                                                nullptr};
    const winsize size{.ws_row = 50, .ws_col = 200, .ws_xpixel = 0, .ws_ypixel = 0};
    child_ = forkpty(&terminal_, nullptr, nullptr, &size);
    if (child_ == 0) {
      execv(arguments[0], const_cast<char* const*>(arguments.data()));
      _exit(127);
    }
  }
  void TearDown() override {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    if (terminal_ >= 0) close(terminal_);
  }

  void type(const std::string& keys) const {
    ASSERT_EQ(write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }

  /// Reads what the terminal shows until it ends with a text. Returns false at the program's end.
  bool reads_until(const std::string& text) {
    while (!shown_.ends_with(text)) {
      if (!read_more()) return false;
    }
    return true;
  }

  int exit_code() {
    while (read_more()) {
    }
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  bool read_more() {
    pollfd source{terminal_, POLLIN, 0};
    if (poll(&source, 1, 60000) <= 0) return false;
    char bytes[4096];
    const ssize_t count = read(terminal_, bytes, sizeof(bytes));
    if (count <= 0) return false;
    shown_.append(bytes, static_cast<size_t>(count));
    return true;
  }

  test::TemporaryFolder folder_;
  std::unique_ptr<SmallServer> server_;
  pid_t child_ = -1;
  int terminal_ = -1;
  std::string shown_;
};

TEST_F(AgentTerminal, ShowsAllThatIsAllowedAndTakesNoEarlierAnswer) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "word" + std::to_string(i) + " ";
  const std::filesystem::path file = folder_.path() / "out";
  start("cat > " + file.string(), "ask",
        {"1. put(\"" + text + "\")\njoin()\n", "Thought: done\nAction: Finish(one\n\x1b[31mtwo)\n"});
  type("n\n");
  ASSERT_TRUE(reads_until("allow this call of put? [y/N] ")) << shown_;
  EXPECT_FALSE(std::filesystem::exists(file));
  std::string unfolded;
  for (size_t at = 0; at < shown_.size(); ++at) {
    if (shown_.compare(at, 4, "\r\n  ") == 0) {
      at += 3;
    } else {
      unfolded += shown_[at];
    }
  }
  EXPECT_THAT(unfolded, HasSubstr(text));
  type("y\n");
  EXPECT_EQ(exit_code(), 0) << shown_;
  EXPECT_THAT(test::read_file(file), HasSubstr("word499"));
  EXPECT_THAT(shown_, HasSubstr("one\r\n [31mtwo"));  // the terminal obeys no answer
}

TEST_F(AgentTerminal, PrintsNoEventsOntoAQuestion) {
  const std::filesystem::path file = folder_.path() / "out";
  start("cat > " + file.string(), "ask",
        {"1. put(\"x\")\n2. math(\"20 + 22\")\njoin()\n", "Action: Finish(done)\n"}, true);
  const std::string question = "allow put {\"text\":\"x\"}? [y/N] ";
  ASSERT_TRUE(reads_until(question)) << shown_;
  // The other call ends before the question or while it is open, and then its line must not come.
  pollfd source{terminal_, POLLIN, 0};
  EXPECT_EQ(poll(&source, 1, 500), 0);
  type("y\n");
  EXPECT_EQ(exit_code(), 0) << shown_;
  EXPECT_THAT(shown_, HasSubstr("\"event\":\"settled\",\"round\":1,\"task\":2"));
  EXPECT_THAT(shown_, HasSubstr("\"answer\":\"done\""));
}

TEST_F(AgentTerminal, EndsItsToolsWhenItIsAskedToEnd) {
  const std::filesystem::path file = folder_.path() / "pid";
  start("trap '' TERM HUP; echo $$ > " + file.string() + "; while :; do sleep 1; done", "allow",
        {"1. put(\"x\")\njoin()\n"});
  for (int i = 0; i < 600 && (!std::filesystem::exists(file) || test::read_file(file).empty()); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  const pid_t tool = std::stoi(test::read_file(file));
  EXPECT_EQ(kill(tool, 0), 0);
  kill(child_, SIGTERM);
  EXPECT_EQ(exit_code(), 130) << shown_;
  EXPECT_NE(kill(tool, 0), 0);
  kill(tool, SIGKILL);
}

TEST(FoldedText, LeavesNothingOutAndCutsNoCharacter) {
  EXPECT_EQ(app::folded("abcdefg", 3), "  abc\n  def\n  g\n");
  EXPECT_EQ(app::folded("ab\ncd\x1b", 10), "  ab\n  cd \n");
  EXPECT_EQ(app::folded("aä€b", 4), "  aä\n  €b\n");
  EXPECT_EQ(app::folded("", 4), "");
}

}  // namespace
}  // namespace verbatim

#endif
