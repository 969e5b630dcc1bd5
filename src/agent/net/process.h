#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/loop/real_loop.h"

namespace verbatim::agent {

struct ProcessOptions {
  std::vector<std::string> command;                     ///< the program, found by PATH, and its arguments
  std::map<std::string, std::string> environment = {};  ///< beside this program's own
  std::string folder = {};                              ///< to run in; empty: this program's
};

struct ProcessHooks {
  std::function<void(std::string_view)> output = {};  ///< a piece of standard output
  /// Called once, when it has ended and its output has been read. Output that another program keeps open is
  /// read for a moment after the end. The status is as a shell shows it: 128 and the signal's number for one
  /// that was killed, and 255 for one whose status cannot be known.
  std::function<void(int status)> ended = {};
};

/// A program that runs beside this one, in a session of its own, with pipes as its standard streams.
class Process {
 public:
  /// Throws Error(kBadInput) if it cannot be started. The hooks are called by the loop.
  Process(RealLoop& loop, const ProcessOptions& options, ProcessHooks hooks);
  /// Kills it and what it has started; the hooks are not called any more.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Writes to its standard input; what it does not take is kept until it ends.
  void write(std::string text);
  /// Closes its standard input when everything is written.
  void end_input();
  /// Asks it to end, and kills it with all that it has started half a second later.
  void stop();
  void kill();
  /// The last bytes of its standard error.
  const std::string& last_errors() const;
  /// "ended with status 1: ...", with its last words on standard error if it has said any.
  std::string ending(int status) const;
  /// Bytes that it has not taken yet.
  size_t unwritten() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace verbatim::agent
