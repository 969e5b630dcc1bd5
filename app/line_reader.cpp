#include "line_reader.h"

#include <fcntl.h>
#include <histedit.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cwchar>
#include <iostream>

#include "fail.h"
#include "text_io.h"
#include "verbatim/verbatim.h"

namespace verbatim::app {

namespace {

/// The key that empties the line. The terminal never delivers it, because Ctrl-C sends SIGINT.
constexpr wchar_t kInterruptKey = 0x03;

/// The key that shows the mark and the line once more (Ctrl-^).
constexpr wchar_t kRedisplayKey = 0x1e;

/// The number of lines of history.
constexpr int kHistory = 1000;

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

/// The editor's state and what its callbacks share.
struct Editor {
  EditLine* lines = nullptr;
  History* history = nullptr;
  std::string mark;
  std::mbstate_t character = {};  ///< the bytes of a character that has not come whole yet
  bool line_emptied = false;      ///< the last key was the interrupt key, and nothing has been said about it
  bool leave_on_interrupt = false;  ///< the last key was the interrupt key
};

Editor* editor_of(EditLine* lines) {
  void* data = nullptr;
  el_get(lines, EL_CLIENTDATA, &data);
  return static_cast<Editor*>(data);
}

char* show_mark(EditLine* lines) {
  return editor_of(lines)->mark.data();
}

/// Waits for a key or for Ctrl-C, which empties the line, or leaves if it was just emptied. Returns the
/// number of characters: 1, 0 at the end of the input, -1 if reading fails.
int read_key(EditLine* lines, wchar_t* key) {
  Editor& editor = *editor_of(lines);
  if (editor.line_emptied) {
    editor.line_emptied = false;
    say("\n(Ctrl-C again or Ctrl-D leaves)\n");
    *key = kRedisplayKey;
    return 1;
  }
  while (true) {
    pollfd sources[] = {{STDIN_FILENO, POLLIN, 0}, {interrupt_pipe[0], POLLIN, 0}};
    if (poll(sources, 2, -1) < 0) continue;
    if (take_interrupt()) {
      if (editor.leave_on_interrupt) return 0;
      editor.line_emptied = editor.leave_on_interrupt = true;
      *key = kInterruptKey;
      return 1;
    }
    char byte = 0;
    const ssize_t count = read(STDIN_FILENO, &byte, 1);
    if (count == 0) return 0;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    const size_t length = std::mbrtowc(key, &byte, 1, &editor.character);
    if (length == static_cast<size_t>(-1)) editor.character = {};  // a byte of no character is passed over
    if (length > 1) continue;
    editor.leave_on_interrupt = false;
    return 1;
  }
}

Editor open_editor() {
  // Messages are UTF-8, whatever the locale of the terminal is.
  std::setlocale(LC_CTYPE, "C.UTF-8");
  Editor editor;
  editor.lines = el_init("verbatim", stdin, stderr, stderr);
  editor.history = history_init();
  if (editor.lines == nullptr || editor.history == nullptr) {
    fail(ErrorKind::kMachine, "this terminal cannot be used for editing lines: give them through a pipe");
  }
  HistEvent event;
  history(editor.history, &event, H_SETSIZE, kHistory);
  EditLine* const lines = editor.lines;
  el_set(lines, EL_EDITOR, "emacs");
  el_set(lines, EL_SIGNAL, 0);
  el_set(lines, EL_HIST, history, editor.history);
  el_set(lines, EL_PROMPT, show_mark);
  el_set(lines, EL_GETCFN, read_key);
  // A function of our own (EL_ADDFN) would leave its name behind when the editor is closed.
  el_set(lines, EL_BIND, "^C", "em-kill-line", nullptr);
  el_set(lines, EL_BIND, "^^", "ed-redisplay", nullptr);
  el_set(lines, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  el_set(lines, EL_BIND, "\t", "ed-insert", nullptr);  // not the names of files
  return editor;
}

/// The editor of the one LineReader on a terminal that lives.
Editor editor;

std::optional<std::string> edit_line(const std::string& mark) {
  take_interrupt();  // one that came too late to stop a reply
  editor.mark = mark;
  editor.line_emptied = editor.leave_on_interrupt = false;
  // Before the mark is shown, so that every key that answers it is the editor's and not the terminal's.
  el_set(editor.lines, EL_PREP_TERM, 1);
  int count = 0;
  const char* const typed = el_gets(editor.lines, &count);
  if (typed == nullptr || count <= 0) {
    say("\n");
    return std::nullopt;
  }
  std::string line(typed, static_cast<size_t>(count));
  while (line.ends_with('\n') || line.ends_with('\r')) line.pop_back();
  HistEvent event;
  if (!line.empty()) history(editor.history, &event, H_ENTER, line.c_str());
  return line;
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
  editor = open_editor();
  el_set(editor.lines, EL_CLIENTDATA, &editor);
}

LineReader::~LineReader() {
  if (!on_terminal_) return;
  el_end(editor.lines);
  history_end(editor.history);
  sigaction(SIGINT, &action_before, nullptr);
  close(interrupt_pipe[0]);
  close(interrupt_pipe[1]);
}

std::optional<std::string> LineReader::next(const std::string& mark) {
  return on_terminal_ ? edit_line(mark) : plain_line(mark);
}

}  // namespace verbatim::app
