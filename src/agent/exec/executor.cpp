#include "agent/exec/executor.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/tools/schema_check.h"
#include "verbatim/text.h"

namespace verbatim::agent {

namespace {

constexpr int kMostDoublings = 16;

/// The value with its text cut to `most` bytes, and the cut shown.
Json limited(Json value, size_t most) {
  if (value.is_string() && value.get_ref<const std::string&>().size() <= most) {
    return valid_utf8(value.get_ref<const std::string&>());
  }
  const std::string text = valid_utf8(as_text(value));
  if (text.size() <= most) return value;
  return fmt::format("{}... ({} of {} bytes)", first_bytes(text, most), first_bytes(text, most).size(),
                     text.size());
}

}  // namespace

/// One call of a task's tool.
struct Executor::Attempt {
  uint64_t number = 0;
  int64_t task = 0;
  const ToolEntry* entry = nullptr;
  std::shared_ptr<ToolCall> call;
  uint64_t limit_timer = 0;
  uint64_t hedge_timer = 0;
  uint64_t grace_timer = 0;
  bool out_of_time = false;
};

Executor::Executor(Loop& loop, const ToolSet& tools, ExecutorOptions options, ExecutorHooks hooks)
    : loop_(loop), tools_(tools), options_(options), hooks_(std::move(hooks)) {}

Executor::~Executor() {
  *alive_ = false;
  loop_.forget(straggler_timer_);
  for (const auto& [task, timer] : back_offs_) loop_.forget(timer);
  while (!attempts_.empty()) drop(attempts_.begin()->first);
}

void Executor::tell(TaskEvent event, const Task& task, const std::string& detail) {
  if (hooks_.event) hooks_.event(event, task, detail);
}

void Executor::add(PlannedTask plan) {
  const int64_t id = plan.id;
  Task& task = tasks_.emplace(id, Task{.plan = std::move(plan)}).first->second;
  task.added = loop_.now();
  ++unsettled_;
  tell(TaskEvent::kAdded, task);
  int64_t without = 0;
  for (const int64_t input : task.plan.inputs) {
    const Task& other = tasks_.at(input);
    if (other.state == TaskState::kDone) continue;
    if (settled(other.state)) without = input;
    task.missing.insert(input);
    users_[input].push_back(id);
  }
  if (without != 0) {
    settle(task, TaskState::kSkipped, fmt::format("task {} has no result", without));
  } else if (task.missing.empty()) {
    ready(task);
  }
  pump();
  check();
}

void Executor::ready(Task& task) {
  const ToolEntry* const entry = tools_.find(task.plan.tool);
  if (!entry || entry->policy == Policy::kDeny) {
    settle(task, TaskState::kFailed,
           fmt::format("`{}` may not be called", shown(task.plan.tool, kShownBytes)));
    return;
  }
  const Json& schema = entry->tool->declaration().parameters;
  task.arguments = converted(
      substitute(task.plan.arguments, [&](int64_t id) -> const Json& { return tasks_.at(id).result; }),
      schema);
  if (const auto fault = schema_fault(Term::of(task.arguments), schema, "")) {
    settle(task, TaskState::kFailed, "the arguments are wrong: " + *fault);
    return;
  }
  if (entry->policy == Policy::kAllow) {
    queue(task);
    return;
  }
  task.state = TaskState::kAsking;
  tell(TaskEvent::kAsked, task);
  if (!hooks_.ask) {
    settle(task, TaskState::kFailed, "nobody is there to allow the call");
    return;
  }
  hooks_.ask(task, [this, id = task.plan.id, alive = alive_](bool allowed) {
    if (!*alive) return;
    Task& asked = tasks_.at(id);
    if (asked.state != TaskState::kAsking) return;
    if (allowed) {
      queue(asked);
    } else {
      settle(asked, TaskState::kFailed, "the call was not allowed");
    }
    pump();
    check();
  });
}

void Executor::queue(Task& task) {
  task.state = TaskState::kQueued;
  queue_.push_back(task.plan.id);
}

int Executor::running_of(const std::string& tool) const {
  const auto found = running_.find(tool);
  return found == running_.end() ? 0 : found->second;
}

void Executor::pump() {
  for (auto at = queue_.begin();
       at != queue_.end() && static_cast<int>(attempts_.size()) < options_.concurrency;) {
    Task& task = tasks_.at(*at);
    if (running_of(task.plan.tool) >= tools_.find(task.plan.tool)->limits.concurrency) {
      ++at;
      continue;
    }
    at = queue_.erase(at);
    start(task);
  }
}

void Executor::start(Task& task) {
  if (calls_ >= options_.calls) {
    settle(task, TaskState::kFailed, fmt::format("the run has made all of its {} calls", options_.calls));
    return;
  }
  ++calls_;
  const ToolEntry* const entry = tools_.find(task.plan.tool);
  auto made = std::make_unique<Attempt>();
  Attempt& attempt = *made;
  attempt.number = ++made_;
  attempt.task = task.plan.id;
  attempt.entry = entry;
  attempts_.emplace(attempt.number, std::move(made));
  ++running_[task.plan.tool];
  ++task.attempts;
  task.state = TaskState::kRunning;
  if (task.started < Time(0)) task.started = loop_.now();
  tell(TaskEvent::kStarted, task);
  const uint64_t number = attempt.number;
  attempt.limit_timer = loop_.after(entry->limits.time, [this, number] { on_time_limit(number); });
  if (entry->idempotent && entry->limits.hedge_after > Duration(0) && !task.hedged) {
    attempt.hedge_timer = loop_.after(entry->limits.hedge_after, [this, number] { on_hedge(number); });
  }
  ToolHooks hooks;
  hooks.done = [this, number, alive = alive_](ToolResult result) {
    if (*alive) on_done(number, std::move(result));
  };
  hooks.progress = [this, number, alive = alive_](const std::string& what) {
    if (!*alive) return;
    const auto found = attempts_.find(number);
    if (found != attempts_.end()) tell(TaskEvent::kProgress, tasks_.at(found->second->task), what);
  };
  attempt.call = entry->tool->start(task.arguments, std::move(hooks));
}

void Executor::drop(uint64_t number) {
  const auto found = attempts_.find(number);
  Attempt& attempt = *found->second;
  loop_.forget(attempt.limit_timer);
  loop_.forget(attempt.hedge_timer);
  loop_.forget(attempt.grace_timer);
  --running_[attempt.entry->tool->declaration().name];
  const std::shared_ptr<ToolCall> call = std::move(attempt.call);
  attempts_.erase(found);
}

void Executor::on_done(uint64_t number, ToolResult result) {
  const auto found = attempts_.find(number);
  if (found == attempts_.end()) return;
  const Attempt attempt = *found->second;  // holds the call until this has returned
  const ToolLimits& limits = attempt.entry->limits;
  drop(number);
  Task& task = tasks_.at(attempt.task);
  if (!settled(task.state)) {
    if (result.done) {
      task.result = limited(std::move(result.value), limits.output_bytes);
      settle(task, TaskState::kDone, {});
    } else {
      task.error = attempt.out_of_time ? fmt::format("it took more than {:.3g} s", in_seconds(limits.time))
                                       : shown(result.error, kShownAnswerBytes);
      const bool others = std::any_of(attempts_.begin(), attempts_.end(),
                                      [&](const auto& one) { return one.second->task == attempt.task; });
      const bool again = attempt.entry->idempotent || (result.again && !attempt.out_of_time);
      if (others) {
        // The other call may still succeed.
      } else if (again && task.attempts <= limits.retries) {
        retry(task);
      } else {
        settle(task, TaskState::kFailed, task.error);
      }
    }
  }
  pump();
  check();
}

void Executor::retry(Task& task) {
  const ToolLimits& limits = tools_.find(task.plan.tool)->limits;
  tell(TaskEvent::kRetry, task, task.error);
  const int doublings = std::min(task.attempts - 1, kMostDoublings);
  back_offs_[task.plan.id] =
      loop_.after(limits.back_off * (int64_t{1} << doublings), [this, id = task.plan.id] {
        back_offs_.erase(id);
        queue(tasks_.at(id));
        pump();
        check();
      });
}

void Executor::on_time_limit(uint64_t number) {
  const auto found = attempts_.find(number);
  if (found == attempts_.end()) return;
  found->second->limit_timer = 0;
  found->second->out_of_time = true;
  cancel_attempt(*found->second);
}

void Executor::on_hedge(uint64_t number) {
  const auto found = attempts_.find(number);
  if (found == attempts_.end()) return;
  found->second->hedge_timer = 0;
  Task& task = tasks_.at(found->second->task);
  const bool room = static_cast<int>(attempts_.size()) < options_.concurrency &&
                    running_of(task.plan.tool) < found->second->entry->limits.concurrency;
  if (settled(task.state) || found->second->out_of_time || !room || calls_ >= options_.calls) return;
  task.hedged = true;
  tell(TaskEvent::kHedged, task);
  start(task);
}

void Executor::cancel_attempt(Attempt& attempt) {
  if (attempt.grace_timer != 0) return;
  loop_.forget(attempt.limit_timer);
  loop_.forget(attempt.hedge_timer);
  attempt.grace_timer = loop_.after(options_.cancel_grace, [this, number = attempt.number] {
    on_done(number, ToolResult::failure("it did not end when it was cancelled"));
  });
  const std::shared_ptr<ToolCall> call = attempt.call;
  call->cancel();
}

void Executor::settle(Task& first, TaskState state, std::string error) {
  std::vector<int64_t> skipped;
  const auto end = [&](Task& task, TaskState how, std::string why) {
    if (settled(task.state)) return;
    task.state = how;
    task.error = std::move(why);
    task.ended = loop_.now();
    --unsettled_;
    if (const auto timer = back_offs_.find(task.plan.id); timer != back_offs_.end()) {
      loop_.forget(timer->second);
      back_offs_.erase(timer);
    }
    queue_.remove(task.plan.id);
    for (const auto& [number, attempt] : attempts_) {
      if (attempt->task == task.plan.id) cancel_attempt(*attempt);
    }
    tell(TaskEvent::kSettled, task);
    skipped.push_back(task.plan.id);
  };
  end(first, state, std::move(error));
  while (!skipped.empty()) {
    const int64_t id = skipped.back();
    skipped.pop_back();
    const bool done = tasks_.at(id).state == TaskState::kDone;
    for (const int64_t user : users_[id]) {
      Task& task = tasks_.at(user);
      if (settled(task.state)) continue;
      if (!done) {
        end(task, TaskState::kSkipped, fmt::format("task {} has no result", id));
      } else if (task.missing.erase(id) == 1 && task.missing.empty()) {
        ready(task);
      }
    }
  }
}

void Executor::close() {
  closed_ = true;
  loop_.forget(straggler_timer_);
  straggler_timer_ = 0;
  if (options_.stragglers > Duration(0) && unsettled_ > 0) {
    straggler_timer_ = loop_.after(options_.stragglers, [this] {
      straggler_timer_ = 0;
      for (auto& [id, task] : tasks_) {
        if (!settled(task.state)) {
          settle(
              task, TaskState::kLate,
              fmt::format("it was not done {:.3g} s after the plan's end", in_seconds(options_.stragglers)));
        }
      }
      pump();
      check();
    });
  }
  check();
}

void Executor::cancel(int64_t id) {
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) return;
  settle(found->second, TaskState::kCancelled, "it was called off");
  pump();
  check();
}

void Executor::cancel_all() {
  for (auto& [id, task] : tasks_) settle(task, TaskState::kCancelled, "it was called off");
  check();
}

void Executor::when_settled(std::function<void()> work) {
  when_settled_ = std::move(work);
  check();
}

void Executor::when_idle(std::function<void()> work) {
  when_idle_ = std::move(work);
  check();
}

void Executor::check() {
  if (closed_ && unsettled_ == 0) {
    loop_.forget(straggler_timer_);
    straggler_timer_ = 0;
  }
  if (closed_ && unsettled_ == 0 && when_settled_) {
    const auto work = std::exchange(when_settled_, {});
    const std::shared_ptr<bool> alive = alive_;
    work();
    if (!*alive) return;
  }
  if (attempts_.empty() && back_offs_.empty() && when_idle_) {
    const auto work = std::exchange(when_idle_, {});
    work();
  }
}

}  // namespace verbatim::agent
