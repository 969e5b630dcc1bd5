#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/exec/executor.h"
#include "agent/model/endpoint.h"
#include "agent/plan/plan_parser.h"
#include "agent/run/run_options.h"
#include "agent/tools/tool.h"

namespace verbatim::agent {

struct RunHooks {
  std::function<void(const RunEvent&)> event = {};
  /// As ExecutorHooks::ask.
  std::function<void(const Task&, std::function<void(bool)> answer)> ask = {};
  /// Called once, when the run is over and nothing of it is left.
  std::function<void(const RunResult&)> ended = {};
};

/// One question and all that it takes to answer it.
class Run {
 public:
  /// Begins. The loop, the endpoint and the tools must outlive the run.
  Run(Loop& loop, Endpoint& endpoint, const ToolSet& tools, RunOptions options, std::string question,
      RunHooks hooks);
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// Ends the run early; `ended` is called when everything has stopped.
  void cancel();
  const std::map<int64_t, Task>& tasks() const { return executor_->tasks(); }

 private:
  enum class Asking : uint8_t { kPlan, kJoin, kTurn };

  void tell(RunEvent::Kind kind, std::string text = {});
  void on_task_event(TaskEvent event, const Task& task, const std::string& detail);
  void ask(Asking what, const char* name);
  /// The messages that the model is asked with.
  std::vector<ModelMessage>& conversation();
  Structure structure_of(Asking what, int64_t room) const;
  void take(std::string_view piece);
  void take_part(std::string_view part);
  void take_turn(std::string_view part);
  void account(ModelReply reply);
  void replied(const ModelReply& reply);
  void wrong(const std::string& error);
  void new_parser();
  void plan();
  void plan_ended();
  void join();
  void joined();
  void turn();
  void turn_ended();
  void read_turn_line(std::string line);
  void finish(std::string answer, std::string error);
  /// Ends the run at a limit that it was given.
  void run_out(std::string error);
  void forget_timers();
  std::set<int64_t> known() const;

  Loop& loop_;
  Endpoint& endpoint_;
  RunOptions options_;
  RunHooks hooks_;
  std::vector<ToolDeclaration> tools_;
  std::unique_ptr<Executor> executor_;
  std::vector<ModelMessage> messages_;  // of the planner, or of all turns
  std::vector<ModelMessage> joiner_messages_;
  std::string question_;
  std::unique_ptr<ModelStream> stream_;
  std::unique_ptr<PlanParser> parser_;
  std::vector<PlannedTask> held_;  // tasks of a plan that is not streamed
  Asking asking_ = Asking::kPlan;
  std::string reply_;
  std::string line_;
  bool answering_ = false;
  bool heard_ = false;    // the present reply is complete, or good for no more
  int64_t first_id_ = 1;  // of the present round
  int64_t corrections_ = 0;
  int64_t most_tokens_ = 0;  // of the present reply
  uint64_t limit_timer_ = 0;
  uint64_t end_timer_ = 0;
  uint64_t stop_timer_ = 0;
  bool over_ = false;
  RunResult result_;
  Time begin_;
};

}  // namespace verbatim::agent
