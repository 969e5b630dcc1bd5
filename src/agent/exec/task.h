#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "agent/json.h"
#include "agent/loop/loop.h"
#include "agent/plan/plan_parser.h"

namespace verbatim::agent {

enum class TaskState : uint8_t {
  kWaiting,    ///< for its inputs
  kAsking,     ///< for a person's decision
  kQueued,     ///< for its turn, as many calls run already
  kRunning,    ///< an attempt runs, or one waits to be made again
  kDone,       ///< there is a result
  kFailed,     ///< the tool failed, or was not allowed
  kSkipped,    ///< a task that it uses has no result
  kCancelled,  ///< it was called off
  kLate,       ///< it was not done when the time for stragglers was over
};

/// The name of a state: "waiting", "asking", ...
std::string_view task_state_name(TaskState state);

/// Whether nothing more comes of a task in this state.
inline bool settled(TaskState state) {
  return state >= TaskState::kDone;
}

/// The memory of one task.
struct Task {
  PlannedTask plan;
  TaskState state = TaskState::kWaiting;
  Json arguments = nullptr;  ///< as the tool got them; null before it is ready
  Json result = nullptr;     ///< if done
  std::string error = {};    ///< if it came to an end and is not done: why
  Time added{0};
  Time started{-1};  ///< when the first attempt began; -1: none did
  Time ended{-1};    ///< when it was settled; -1: it is not
  int attempts = 0;
  bool hedged = false;             ///< a second call was started beside a slow one
  std::set<int64_t> missing = {};  ///< inputs that are not done yet
};

/// What a task came to, as models read it: the result's text, or why there is none.
std::string observation(const Task& task);

}  // namespace verbatim::agent
