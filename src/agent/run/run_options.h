#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "agent/exec/executor.h"
#include "agent/loop/loop.h"
#include "agent/model/endpoint.h"

namespace verbatim::agent {

/// How a run makes use of a model and tools.
enum class RunStrategy : uint8_t {
  kCompiler,      ///< plans of many calls, which run while they are written (LLMCompiler)
  kReact,         ///< one call at a time, each after the result of the one before (ReAct)
  kReactCareful,  ///< the same with instructions against loops and early ends (the thesis's ReAct†)
  kParallel,      ///< as many calls at a time as need no result of each other
};

struct RunOptions {
  RunStrategy strategy = RunStrategy::kCompiler;
  /// Examples for the planner, as a text: questions with their plans.
  std::string examples = {};
  /// What else the model is told, after the tools; empty: nothing.
  std::string instructions = {};
  /// The conversation that the question continues.
  std::vector<ModelMessage> earlier = {};
  /// Where the endpoint holds plans to a grammar, the first plan has a call, if there is a tool.
  bool must_call = false;
  /// Starts calls while the plan is being written; otherwise when it is whole.
  bool streamed = true;
  /// Lets planner and joiner begin with the same messages, which an engine that remembers prompts reads once.
  bool shared_prompt = false;
  int64_t max_rounds = 3;        ///< plans, or turns for the other strategies
  int64_t max_corrections = 1;   ///< of what the model wrote wrong, in all
  int64_t max_tokens = 200'000;  ///< of prompts and replies, in all
  int64_t max_reply_tokens = 2048;
  Duration max_time = std::chrono::seconds(600);
  double temperature = 0;
  uint64_t seed = 0;
  ExecutorOptions executor = {};
};

/// Something that happened in a run, for people and programs to follow it.
struct RunEvent {
  enum class Kind : uint8_t {
    kAsked,     ///< the model is asked; `text` is for what: "plan", "join", "turn", "correction"
    kReplied,   ///< it has answered; the tokens are there
    kThought,   ///< `text`
    kTask,      ///< a task was planned; `text` is its line, `inputs` the tasks that it uses
    kApproval,  ///< a person is asked whether the task may run; `text` has the arguments
    kStarted,   ///< a call of the task began; `text` has the arguments
    kProgress,  ///< `text` is what the tool says
    kRetry,     ///< the task will be tried again; `text` says why
    kHedged,    ///< a second call of the task begins
    kSettled,   ///< the task came to its end; `state` names it, and `text` is what it came to
    kWrong,     ///< the model wrote something wrong; `text` says what
    kLeftOut,   ///< a tool or an argument that no grammar can hold to its schema; `text` says which and why
    kAnswer,    ///< the end, with the answer in `text`
    kFailed,    ///< the end, and `text` says why there is no answer
  };
  Kind kind = Kind::kThought;
  Time time{0};
  int64_t round = 0;
  int64_t task = 0;
  std::string tool = {};
  std::string state = {};
  std::string text = {};
  std::vector<int64_t> inputs = {};
  int64_t prompt_tokens = 0;
  int64_t reply_tokens = 0;
};

/// The outcome of a run.
struct RunResult {
  std::string answer = {};
  std::string error = {};    ///< why there is no answer
  bool too_long = false;     ///< the error is that the question leaves the model's context no room
  bool limited = false;      ///< the error is that the run met a limit that it was given
  bool out_of_time = false;  ///< that limit is RunOptions::max_time
  bool no_tool = false;      ///< the error is that a tool has to be called, and there is none
  int64_t rounds = 0;
  int64_t requests = 0;  ///< to the model
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  ///< part of prompt_tokens: those that the endpoint says it remembered
  int64_t reply_tokens = 0;
  int64_t structure_tokens = 0;
  Time time{0};  ///< from beginning to end
};

}  // namespace verbatim::agent
