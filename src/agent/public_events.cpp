#include "agent/public_events.h"

#include <cmath>

#include "agent/json.h"

namespace verbatim::agent {

namespace {

const char* kind_name(RunEvent::Kind kind) {
  switch (kind) {
    case RunEvent::Kind::kAsked:
      return "asked";
    case RunEvent::Kind::kReplied:
      return "replied";
    case RunEvent::Kind::kThought:
      return "thought";
    case RunEvent::Kind::kTask:
      return "task";
    case RunEvent::Kind::kApproval:
      return "approval";
    case RunEvent::Kind::kStarted:
      return "started";
    case RunEvent::Kind::kProgress:
      return "progress";
    case RunEvent::Kind::kRetry:
      return "retry";
    case RunEvent::Kind::kHedged:
      return "hedged";
    case RunEvent::Kind::kSettled:
      return "settled";
    case RunEvent::Kind::kWrong:
      return "wrong";
    case RunEvent::Kind::kLeftOut:
      return "left_out";
    case RunEvent::Kind::kAnswer:
      return "answer";
    case RunEvent::Kind::kFailed:
      break;
  }
  return "failed";
}

}  // namespace

AgentEvent public_event(const RunEvent& event) {
  return {.seconds = in_seconds(event.time),
          .kind = kind_name(event.kind),
          .round = event.round,
          .task = event.task,
          .tool = event.tool,
          .state = event.state,
          .text = valid_utf8(event.text),
          .inputs = event.inputs,
          .prompt_tokens = event.prompt_tokens,
          .reply_tokens = event.reply_tokens};
}

AgentAnswer public_answer(const RunResult& result, int64_t calls) {
  return {.text = result.answer,
          .error = result.error,
          .too_long = result.too_long,
          .limited = result.limited,
          .no_tool = result.no_tool,
          .seconds = in_seconds(result.time),
          .rounds = result.rounds,
          .requests = result.requests,
          .prompt_tokens = result.prompt_tokens,
          .cached_tokens = result.cached_tokens,
          .reply_tokens = result.reply_tokens,
          .structure_tokens = result.structure_tokens,
          .calls = calls};
}

int64_t calls_of(const std::map<int64_t, Task>& tasks) {
  int64_t calls = 0;
  for (const auto& [id, task] : tasks) calls += task.attempts > 0 ? 1 : 0;
  return calls;
}

}  // namespace verbatim::agent

namespace verbatim {

std::string agent_event_json(const AgentEvent& event) {
  agent::Json json = {{"seconds", event.seconds}, {"event", event.kind}, {"round", event.round}};
  if (event.task != 0) {
    json["task"] = event.task;
    json["tool"] = event.tool;
    json["state"] = event.state;
  }
  if (event.kind == "task") json["inputs"] = event.inputs;
  if (event.kind == "replied") {
    json["prompt_tokens"] = event.prompt_tokens;
    json["reply_tokens"] = event.reply_tokens;
  }
  if (!event.text.empty()) json["text"] = event.text;
  return agent::dump(json);
}

}  // namespace verbatim
