#include "agent/run/run.h"

namespace verbatim::agent {

void Run::tell(RunEvent::Kind kind, std::string text) {
  if (!hooks_.event) return;
  hooks_.event(
      {.kind = kind, .time = loop_.now() - begin_, .round = result_.rounds, .text = std::move(text)});
}

void Run::on_task_event(TaskEvent event, const Task& task, const std::string& detail) {
  if (!hooks_.event) return;
  RunEvent told{
      .time = loop_.now() - begin_, .round = result_.rounds, .task = task.plan.id, .tool = task.plan.tool};
  told.state = task_state_name(task.state);
  told.text = detail;
  switch (event) {
    case TaskEvent::kAdded:
      told.kind = RunEvent::Kind::kTask;
      told.text = written(task.plan);
      told.inputs.assign(task.plan.inputs.begin(), task.plan.inputs.end());
      break;
    case TaskEvent::kAsked:
    case TaskEvent::kStarted:
      told.kind = event == TaskEvent::kAsked ? RunEvent::Kind::kApproval : RunEvent::Kind::kStarted;
      told.text = dump(task.arguments);
      break;
    case TaskEvent::kProgress:
      told.kind = RunEvent::Kind::kProgress;
      break;
    case TaskEvent::kRetry:
      told.kind = RunEvent::Kind::kRetry;
      break;
    case TaskEvent::kHedged:
      told.kind = RunEvent::Kind::kHedged;
      break;
    case TaskEvent::kSettled:
      told.kind = RunEvent::Kind::kSettled;
      told.text = observation(task);
      break;
  }
  hooks_.event(told);
}

}  // namespace verbatim::agent
