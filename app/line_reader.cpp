#include "line_reader.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include <readline/history.h>
#include <readline/readline.h>

#include "base/error.h"
#include "text_io.h"
#include "verbatim/verbatim.h"

namespace verbatim::app {

namespace {

// Readline's callbacks take no context, so what they say lies here.
enum class Editing { kGoing, kDone, kLeft };
Editing editing = Editing::kGoing;
std::string typed;

// Any thread may receive the signal, so the handler tells the reading thread through a pipe.
int interrupt_pipe[2] = {-1, -1};
struct sigaction action_before;

void on_interrupt(int) {
  const char byte = 0;
  [[maybe_unused]] const ssize_t ignored = write(interrupt_pipe[1], &byte, 1);
}

/// Whether Ctrl-C was pressed since the last call.
bool take_interrupt() {
  char bytes[64];
  bool seen = false;
  while (read(interrupt_pipe[0], bytes, sizeof(bytes)) > 0) seen = true;
  return seen;
}

void on_line(char* line) {
  editing = line != nullptr ? Editing::kDone : Editing::kLeft;
  typed = line != nullptr ? line : "";
  std::free(line);
  // At once, or readline would show the next prompt before the reply.
  rl_callback_handler_remove();
}

void clear_line() {
  rl_free_line_state();
  rl_callback_sigcleanup();
  rl_replace_line("", 0);
  say("\n(Ctrl-C again or Ctrl-D leaves)\n");
  rl_on_new_line();
  rl_redisplay();
}

std::optional<std::string> edit_line(const std::string& mark) {
  take_interrupt();  // one that came too late to stop a reply
  editing = Editing::kGoing;
  rl_callback_handler_install(mark.c_str(), on_line);
  bool leave_on_interrupt = false;
  while (editing == Editing::kGoing) {
    pollfd sources[] = {{STDIN_FILENO, POLLIN, 0}, {interrupt_pipe[0], POLLIN, 0}};
    if (poll(sources, 2, -1) < 0) continue;
    if (take_interrupt()) {
      if (leave_on_interrupt) {
        on_line(nullptr);
      } else {
        leave_on_interrupt = true;
        clear_line();
      }
    } else {
      leave_on_interrupt = false;
      rl_callback_read_char();
    }
  }
  if (editing == Editing::kLeft) {
    say("\n");
    return std::nullopt;
  }
  if (!typed.empty()) add_history(typed.c_str());
  return typed;
}

std::optional<std::string> plain_line(const std::string& mark) {
  std::string line;
  if (!std::getline(std::cin, line)) return std::nullopt;
  if (line.ends_with('\r')) line.pop_back();
  say("{}{}\n", mark, one_line(line));
  return line;
}

}  // namespace

LineReader::LineReader() : on_terminal_(isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1) {
  if (!on_terminal_) return;
  if (pipe2(interrupt_pipe, O_NONBLOCK | O_CLOEXEC) != 0) fail(ErrorKind::kMachine, "no pipe is to be had");
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, &action_before);
  rl_catch_signals = 0;
  rl_outstream = stderr;
  rl_bind_key('\t', rl_insert);  // not the names of files
}

LineReader::~LineReader() {
  if (!on_terminal_) return;
  rl_callback_handler_remove();
  sigaction(SIGINT, &action_before, nullptr);
  close(interrupt_pipe[0]);
  close(interrupt_pipe[1]);
}

std::optional<std::string> LineReader::next(const std::string& mark) {
  return on_terminal_ ? edit_line(mark) : plain_line(mark);
}

}  // namespace verbatim::app
