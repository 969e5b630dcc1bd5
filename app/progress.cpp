#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

#include "text_io.h"

namespace verbatim::app {

namespace {

/// The progress bar that is wanted now.
struct ProgressBar {
  std::string what;  ///< empty: none
  std::chrono::steady_clock::time_point start;
  bool visible = false;  ///< or, where stderr is no terminal, the line was written
};
ProgressBar progress_bar;

}  // namespace

void show_progress(const std::string& what, double fraction) {
  static const bool terminal = isatty(STDERR_FILENO) == 1;
  const auto now = std::chrono::steady_clock::now();
  if (progress_bar.what != what) {
    end_progress();
    progress_bar = {.what = what, .start = now};
  }
  if (!terminal) {
    if (progress_bar.visible || now - progress_bar.start < std::chrono::seconds(10)) return;
    say("verbatim: {}; this may take a while\n", what);
    progress_bar.visible = true;
    return;
  }
  if (now - progress_bar.start < std::chrono::seconds(1)) return;
  constexpr int kWidth = 30;
  const int filled = static_cast<int>(fraction * kWidth);
  write_error(fmt::format("\r{} [{:=<{}}{: <{}}] {:3.0f} %", what, "", filled, "", kWidth - filled,
                          fraction * 100.0));
  progress_bar.visible = true;
}

void show_measuring(double fraction) {
  show_progress("measuring what passes cost", fraction);
}

void show_reading(double fraction) {
  fraction < 1.0 ? show_progress("reading the prompt", fraction) : end_progress();
}

void end_progress() {
  if (progress_bar.visible && isatty(STDERR_FILENO) == 1) write_error("\r\033[K");
  progress_bar = {};
}

}  // namespace verbatim::app
