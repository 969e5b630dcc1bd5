#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "agent/exec/task.h"
#include "agent/loop/loop.h"
#include "agent/tools/tool.h"

namespace verbatim::agent {

struct ExecutorOptions {
  int concurrency = 64;  ///< calls at a time, of all tools
  /// The time after a plan's end in which its tasks may still end; the joiner then gets what there is. 0: no
  /// such time.
  Duration stragglers = Duration(0);
  /// The time that a call has to end after it was cancelled, before it is dropped.
  Duration cancel_grace = std::chrono::seconds(5);
  int64_t calls = 10'000;  ///< the most attempts in all; tasks beyond fail
};

/// What happened to a task.
enum class TaskEvent : uint8_t { kAdded, kAsked, kStarted, kProgress, kRetry, kHedged, kSettled };

struct ExecutorHooks {
  std::function<void(TaskEvent, const Task&, const std::string& detail)> event = {};
  /// Asks whether a call may be made; the answer may come at any time. Empty: the answer is no.
  std::function<void(const Task&, std::function<void(bool)> answer)> ask = {};
};

/// The task fetching unit and the executor (thesis, 6.2): starts a task as soon as the results that it uses
/// are there, with their values in the place of the references, and runs all such calls side by side. A task
/// that fails ends the tasks that use it and no others.
class Executor {
 public:
  /// The loop, the tools and what the hooks use must outlive the executor.
  Executor(Loop& loop, const ToolSet& tools, ExecutorOptions options, ExecutorHooks hooks);
  /// Ends what still runs.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Takes a task whose inputs have been taken before.
  void add(PlannedTask plan);
  /// Calls a function, at once or later, when every task so far is settled. Until close() more may come.
  void when_settled(std::function<void()> work);
  /// Says that the plan has ended: the time for stragglers begins, and when_settled() may call.
  void close();
  /// Opens the executor to another plan.
  void reopen() { closed_ = false; }
  /// Calls off one task, or all that are not settled.
  void cancel(int64_t id);
  void cancel_all();
  /// Calls a function, at once or later, when no call runs any more.
  void when_idle(std::function<void()> work);

  const std::map<int64_t, Task>& tasks() const { return tasks_; }
  /// The calls that run.
  size_t running() const { return attempts_.size(); }

 private:
  struct Attempt;
  using Settled = std::pair<int64_t, TaskState>;

  void tell(TaskEvent event, const Task& task, const std::string& detail = {});
  void ready(Task& task);
  void queue(Task& task);
  void pump();
  void start(Task& task);
  void drop(uint64_t number);
  void on_done(uint64_t number, ToolResult result);
  void on_time_limit(uint64_t number);
  void on_hedge(uint64_t number);
  void cancel_attempt(Attempt& attempt);
  void retry(Task& task);
  void settle(Task& task, TaskState state, std::string error);
  void check();
  int running_of(const std::string& tool) const;

  Loop& loop_;
  const ToolSet& tools_;
  ExecutorOptions options_;
  ExecutorHooks hooks_;
  std::map<int64_t, Task> tasks_;
  std::map<int64_t, std::vector<int64_t>> users_;  // of a task's result
  std::list<int64_t> queue_;
  std::map<uint64_t, std::unique_ptr<Attempt>> attempts_;
  std::map<int64_t, uint64_t> back_offs_;  // timers of tasks that wait to be tried again
  std::map<std::string, int, std::less<>> running_;
  uint64_t made_ = 0;
  int64_t calls_ = 0;
  size_t unsettled_ = 0;
  bool closed_ = false;
  uint64_t straggler_timer_ = 0;
  std::function<void()> when_settled_;
  std::function<void()> when_idle_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace verbatim::agent
