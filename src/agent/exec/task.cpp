#include "agent/exec/task.h"

namespace verbatim::agent {

std::string_view task_state_name(TaskState state) {
  switch (state) {
    case TaskState::kWaiting:
      return "waiting";
    case TaskState::kAsking:
      return "asking";
    case TaskState::kQueued:
      return "queued";
    case TaskState::kRunning:
      return "running";
    case TaskState::kDone:
      return "done";
    case TaskState::kFailed:
      return "failed";
    case TaskState::kSkipped:
      return "skipped";
    case TaskState::kCancelled:
      return "cancelled";
    case TaskState::kLate:
      break;
  }
  return "late";
}

std::string observation(const Task& task) {
  if (task.state == TaskState::kDone) return as_text(task.result);
  return "(" + std::string(task_state_name(task.state)) + (task.error.empty() ? "" : ": " + task.error) + ")";
}

}  // namespace verbatim::agent
