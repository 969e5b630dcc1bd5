#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/loop/loop.h"
#include "agent/model/endpoint.h"
#include "agent/run/run.h"
#include "agent/tools/tool.h"

namespace verbatim::agent {

/// What came to a run from outside, in order: timers, pieces of replies, results of tools, decisions. A run
/// depends on nothing else, so the same journal gives the same run.
class Journal {
 public:
  void add(Time time, const char* kind, int64_t number, Json value);
  const std::vector<Json>& entries() const { return entries_; }

 private:
  std::vector<Json> entries_;
};

/// A loop, an endpoint and tools for one run that write down what happens.
class Recorder {
 public:
  /// All three must outlive the recorder, and the recorder the run.
  Recorder(Loop& loop, Endpoint& endpoint, const ToolSet& tools);
  ~Recorder();

  Loop& loop();
  Endpoint& endpoint();
  const ToolSet& tools() const { return tools_; }
  /// The hook with its answers written down.
  std::function<void(const Task&, std::function<void(bool)>)> recorded(
      std::function<void(const Task&, std::function<void(bool)>)> ask);
  /// Writes down that the run is cancelled.
  void cancelled();
  /// The recording as a text: a line for the run and one for each entry.
  std::string text(const RunOptions& options, const std::string& question) const;

 private:
  class RecordingLoop;
  class RecordingEndpoint;
  class RecordingTool;
  Journal journal_;
  Loop& inner_loop_;
  const ToolSet& inner_tools_;
  Time begin_;
  int64_t calls_ = 0;
  bool asks_ = false;
  std::unique_ptr<RecordingLoop> loop_;
  std::unique_ptr<RecordingEndpoint> endpoint_;
  ToolSet tools_;
};

/// Does a recorded run again; returns its result, and `question` becomes its question. Throws
/// Error(kBadInput) for a text that is no recording.
RunResult replay(const std::string& text, std::string& question,
                 const std::function<void(const RunEvent&)>& event, int64_t& calls);

}  // namespace verbatim::agent
