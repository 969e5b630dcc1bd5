#include "agent_view.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "text_io.h"
#include "verbatim/text.h"

namespace verbatim::app {

namespace {

constexpr size_t kLongestLine = 100;
constexpr size_t kLongestNote = 60;

const char* mark_of(const std::string& state) {
  if (state == "done") return "+";
  if (state == "running") return ">";
  if (state == "failed" || state == "late" || state == "skipped" || state == "cancelled") return "x";
  return ".";
}

}  // namespace

AgentView::AgentView(bool live)
    : live_(live), shared_(isatty(STDOUT_FILENO) == 1), begin_(std::chrono::steady_clock::now()) {}

double AgentView::now() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

std::string AgentView::line_of(const Node& node) const {
  std::string waits;
  for (const int64_t input : node.inputs) {
    for (const Node& other : nodes_) {
      if (other.task == input && other.ended < 0)
        waits += fmt::format("{}{}", waits.empty() ? "waits for " : ", ", input);
    }
  }
  std::string about = node.state == "waiting" && !waits.empty() ? waits : node.state;
  if (node.started >= 0)
    about += fmt::format(" {:.1f} s", (node.ended < 0 ? now() : node.ended) - node.started);
  if (!node.note.empty()) about += ": " + node.note;
  return fmt::format("{}{} {}  [{}]", node.inputs.empty() ? "" : "  ", mark_of(node.state),
                     shown(node.line, kLongestLine), about);
}

void AgentView::add(const AgentEvent& event) {
  const std::lock_guard lock(mutex_);
  Node* node = nullptr;
  for (Node& one : nodes_) {
    if (one.task == event.task && event.task != 0) node = &one;
  }
  if (event.kind == "asked") model_ = "the model writes: " + event.text;
  if (event.kind == "replied") model_.clear();
  if (event.kind == "task")
    nodes_.push_back({.task = event.task, .line = event.text, .inputs = event.inputs});
  if (node && event.kind != "task") {
    node->state = event.state;
    node->note = event.kind == "started" ? "" : shown(event.text, kLongestNote);
    if (event.kind == "started" && node->started < 0) node->started = now();
    if (event.kind == "settled") node->ended = now();
  }
  if (live_) {
    if (event.kind == "thought" || event.kind == "wrong" || event.kind == "left_out") {
      erase();
      put(fmt::format("{}: {}\n", event.kind == "left_out" ? "left out" : event.kind, one_line(event.text)));
    }
    draw_locked();
    return;
  }
  const bool plain = event.kind == "thought" || event.kind == "wrong" || event.kind == "left_out" ||
                     event.kind == "retry" || event.kind == "hedged";
  if (event.kind == "started" || event.kind == "settled") {
    put(fmt::format("{:8.3f} s  {} {}{}\n", event.seconds, event.task, event.state,
                    event.kind == "settled" ? ": " + shown(event.text, kLongestLine)
                                            : " " + shown(node ? node->line : "", kLongestLine)));
  } else if (plain) {
    put(fmt::format("{:8.3f} s  {}: {}\n", event.seconds, event.kind, one_line(event.text)));
  }
}

void AgentView::put(const std::string& text) {
  if (paused_) {
    held_ += text;
  } else {
    say_text(text);
  }
}

void AgentView::print(const std::string& line) {
  const std::lock_guard lock(mutex_);
  if (paused_ && shared_) {
    held_out_ += line;
  } else {
    write_out(line);
  }
}

void AgentView::erase() {
  if (drawn_ > 0) write_error(fmt::format("\x1b[{}A\x1b[J", drawn_));
  drawn_ = 0;
}

void AgentView::draw_locked() {
  if (!live_ || paused_) return;
  constexpr size_t kMostLines = 20;
  std::string text;
  int lines = 0;
  const size_t first = nodes_.size() > kMostLines ? nodes_.size() - kMostLines : 0;
  for (size_t i = first; i < nodes_.size(); ++i, ++lines) text += line_of(nodes_[i]) + "\n";
  if (!model_.empty()) {
    text += model_ + "\n";
    ++lines;
  }
  erase();
  say_text(text);
  drawn_ = lines;
}

void AgentView::draw() {
  const std::lock_guard lock(mutex_);
  draw_locked();
}

void AgentView::pause() {
  const std::lock_guard lock(mutex_);
  erase();
  paused_ = true;
}

void AgentView::resume() {
  const std::lock_guard lock(mutex_);
  paused_ = false;
  say_text(std::exchange(held_, {}));
  write_out(std::exchange(held_out_, {}));
}

}  // namespace verbatim::app
