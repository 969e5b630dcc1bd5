#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "verbatim/agent.h"

namespace verbatim::app {

/// Shows on standard error how an agent is doing: on a terminal a tree of the calls that is drawn anew as
/// they go on, and otherwise a line for what happens. May be used from several threads.
class AgentView {
 public:
  /// Without `live` there are lines alone.
  explicit AgentView(bool live);

  void add(const AgentEvent& event);
  /// Prints a line on standard output. One that would go to a terminal waits for resume().
  void print(const std::string& line);
  /// Draws the tree anew, with the time that running calls have taken.
  void draw();
  /// Takes the tree away for something else on the terminal, and keeps all lines back, until resume().
  void pause();
  void resume();

 private:
  struct Node {
    int64_t task = 0;
    std::string line;
    std::string state = "waiting";
    std::string note = {};
    double started = -1;
    double ended = -1;
    std::vector<int64_t> inputs = {};
  };
  double now() const;
  std::string line_of(const Node& node) const;
  void put(const std::string& text);
  void erase();
  void draw_locked();

  std::mutex mutex_;
  bool live_;
  bool shared_;  // standard output is a terminal, where a question may stand
  bool paused_ = false;
  int drawn_ = 0;         // lines on the terminal
  std::string held_;      // lines that came while it was paused
  std::string held_out_;  // the same of standard output
  std::string model_;
  std::vector<Node> nodes_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace verbatim::app
