#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "support/run_program.h"
#include "support/test_data.h"

namespace verbatim {
namespace line_reader_test {
namespace {

/// `verbatim chat` on a terminal of its own.
class Chat {
 public:
  Chat() {
    const std::string program = test::program();
    const std::string model = test::draft_model();
    const char* const arguments[] = {program.c_str(), "chat", model.c_str(), "--recipe", "plain", nullptr};
    child_ = forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (child_ == 0) {
      setenv("TERM", "xterm", 1);
      execv(arguments[0], const_cast<char* const*>(arguments));
      _exit(127);
    }
  }
  ~Chat() {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    close(terminal_);
  }
  Chat(const Chat&) = delete;
  Chat& operator=(const Chat&) = delete;

  void type(const std::string& keys) const {
    ASSERT_EQ(write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }

  /// Waits for the mark in front of the first line. A bar that shows how far the loading is can hold that
  /// mark, too.
  bool is_ready() { return shows("Ctrl-D leaves.") && shows("> "); }

  /// Reads what the terminal shows until a text is among it, which is then taken. Returns false if the
  /// program ends before or keeps silent for a minute.
  bool shows(const std::string& text) {
    while (true) {
      if (const size_t found = shown_.find(text); found != std::string::npos) {
        shown_.erase(0, found + text.size());
        return true;
      }
      if (!read_more()) return false;
    }
  }

  /// The exit code, after everything has been read.
  int exit_code() {
    while (read_more()) {
    }
    if (!ended_) kill(child_, SIGKILL);  // it waits for more, which fails the test
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  const std::string& rest() const { return shown_; }

 private:
  bool read_more() {
    pollfd source{terminal_, POLLIN, 0};
    if (poll(&source, 1, 60000) <= 0) return false;
    char bytes[1024];
    const ssize_t count = read(terminal_, bytes, sizeof(bytes));
    ended_ = count <= 0;
    if (ended_) return false;
    shown_.append(bytes, static_cast<size_t>(count));
    return true;
  }

  int terminal_ = -1;
  pid_t child_ = -1;
  bool ended_ = false;  ///< nobody has the terminal open any more
  std::string shown_;
};

constexpr const char* kOfTheHelp = "/reset";
constexpr const char* kAfterCtrlC = "(Ctrl-C again or Ctrl-D leaves)";

TEST(ChatOnATerminal, LetsALineBeMendedBeforeItIsSent) {
  Chat chat;
  ASSERT_TRUE(chat.is_ready()) << chat.rest();
  chat.type("/heXlp\x1b[D\x1b[D\x7f\n");  // two to the left, and the X goes
  EXPECT_TRUE(chat.shows(kOfTheHelp)) << chat.rest();
  ASSERT_TRUE(chat.shows("> "));
  chat.type("/quit\n");
  EXPECT_EQ(chat.exit_code(), 0);
}

TEST(ChatOnATerminal, TakesACharacterOfSeveralBytesForOne) {
  Chat chat;
  ASSERT_TRUE(chat.is_ready()) << chat.rest();
  chat.type("/é日🙂\x7f\x7f\x7fquit\n");
  EXPECT_EQ(chat.exit_code(), 0) << chat.rest();
}

TEST(ChatOnATerminal, RemembersEarlierLines) {
  Chat chat;
  ASSERT_TRUE(chat.is_ready()) << chat.rest();
  chat.type("/help\n");
  ASSERT_TRUE(chat.shows(kOfTheHelp)) << chat.rest();
  ASSERT_TRUE(chat.shows("> "));
  chat.type("\x1b[A\n");
  EXPECT_TRUE(chat.shows(kOfTheHelp)) << chat.rest();
}

TEST(ChatOnATerminal, ClearsTheLineAtCtrlCAndLeavesAtASecondOne) {
  Chat chat;
  ASSERT_TRUE(chat.is_ready()) << chat.rest();
  chat.type("not to be sent\x03");
  ASSERT_TRUE(chat.shows(kAfterCtrlC)) << chat.rest();
  chat.type("/help\n");
  ASSERT_TRUE(chat.shows(kOfTheHelp)) << chat.rest();
  ASSERT_TRUE(chat.shows("> "));
  chat.type("\x03");
  ASSERT_TRUE(chat.shows(kAfterCtrlC)) << chat.rest();
  chat.type("\x03");
  EXPECT_EQ(chat.exit_code(), 0) << chat.rest();
}

TEST(ChatOnATerminal, LeavesAtCtrlD) {
  Chat chat;
  ASSERT_TRUE(chat.is_ready()) << chat.rest();
  chat.type("\x04");
  EXPECT_EQ(chat.exit_code(), 0) << chat.rest();
}

}  // namespace
}  // namespace line_reader_test
}  // namespace verbatim
