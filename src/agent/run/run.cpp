#include "agent/run/run.h"

#include <fmt/format.h>

#include "agent/grammar/plan_grammar.h"
#include "agent/model/scripted_endpoint.h"
#include "agent/run/joiner.h"
#include "agent/run/prompts.h"
#include "verbatim/error.h"
#include "verbatim/text.h"

namespace verbatim::agent {

namespace {

constexpr const char* kAnswerMark = "Answer:";

double in_seconds(Time time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

Run::Run(Loop& loop, Endpoint& endpoint, const ToolSet& tools, RunOptions options, std::string question,
         RunHooks hooks)
    : loop_(loop),
      endpoint_(endpoint),
      options_(std::move(options)),
      hooks_(std::move(hooks)),
      tools_(tools.declarations()),
      question_(std::move(question)),
      begin_(loop.now()) {
  ExecutorHooks executor_hooks;
  executor_hooks.event = [this](TaskEvent event, const Task& task, const std::string& detail) {
    on_task_event(event, task, detail);
  };
  executor_hooks.ask = hooks_.ask;
  executor_ = std::make_unique<Executor>(loop, tools, options_.executor, std::move(executor_hooks));
  messages_ = {{"system", system_prompt(options_, tools_)}, {"user", question_}};
  joiner_messages_ = {{"system", joiner_prompt()}, {"user", question_}};
  limit_timer_ = loop_.after(options_.max_time, [this] {
    limit_timer_ = 0;
    finish({}, fmt::format("the run took more than {:.3g} s", in_seconds(options_.max_time)));
  });
  if (options_.strategy == RunStrategy::kCompiler) {
    plan();
  } else {
    turn();
  }
}

Run::~Run() {
  loop_.forget(limit_timer_);
  loop_.forget(end_timer_);
}

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

std::set<int64_t> Run::known() const {
  std::set<int64_t> ids;
  for (const auto& [id, task] : executor_->tasks()) ids.insert(id);
  return ids;
}

void Run::ask(Asking what, const char* name) {
  asking_ = what;
  reply_.clear();
  line_.clear();
  heard_ = false;
  answering_ = false;
  if (result_.prompt_tokens + result_.reply_tokens >= options_.max_tokens) {
    finish({}, fmt::format("the run has used its {} tokens", options_.max_tokens));
    return;
  }
  tell(RunEvent::Kind::kAsked, name);
  ++result_.requests;
  const bool own_joiner = what == Asking::kJoin && !options_.shared_prompt;
  ModelRequest request{.messages = own_joiner ? joiner_messages_ : messages_,
                       .max_tokens = options_.max_reply_tokens,
                       .temperature = options_.temperature,
                       .seed = options_.seed};
  try {
    if (endpoint_.constrains()) request.structure = structure_of(what);
  } catch (const Error& error) {  // a tool's schema allows nothing
    finish({}, error.what());
    return;
  }
  stream_ =
      endpoint_.start(std::move(request), {.piece = [this](std::string_view piece) { take(piece); },
                                           .ended = [this](const ModelReply& reply) { replied(reply); }});
}

Structure Run::structure_of(Asking what) const {
  constexpr int64_t kMostCalls = 16;
  if (what == Asking::kPlan) return plan_structure(tools_, known(), parser_->next_id(), kMostCalls);
  if (what == Asking::kJoin) return joiner_structure(result_.rounds < options_.max_rounds);
  return turn_structure(tools_, known(), options_.strategy == RunStrategy::kParallel);
}

void Run::take(std::string_view piece) {
  if (over_ || heard_) return;
  reply_ += piece;
  if (asking_ == Asking::kTurn) {
    take_turn(piece);
    return;
  }
  if (asking_ == Asking::kJoin) return;
  try {
    parser_->add(piece);
  } catch (const PlanError& error) {
    wrong(error.what());
    return;
  }
  // What a model says after the plan's end is of no use, so it is not waited for.
  if (parser_->joined()) replied({.reply_tokens = -1});
}

/// Counts what a reply took. Where the endpoint did not say, because it was cut short or never does, four
/// bytes are a token.
void Run::account(ModelReply reply) {
  if (reply.reply_tokens < 0 || (reply.prompt_tokens == 0 && reply.error.empty())) {
    const bool own_joiner = asking_ == Asking::kJoin && !options_.shared_prompt;
    reply.prompt_tokens = 0;
    for (const ModelMessage& message : own_joiner ? joiner_messages_ : messages_) {
      reply.prompt_tokens += ScriptedEndpoint::tokens_of(message.content);
    }
    reply.reply_tokens = ScriptedEndpoint::tokens_of(reply_);
  }
  result_.prompt_tokens += reply.prompt_tokens;
  result_.reply_tokens += reply.reply_tokens;
  result_.structure_tokens += reply.structure_tokens;
  if (!hooks_.event) return;
  hooks_.event({.kind = RunEvent::Kind::kReplied,
                .time = loop_.now() - begin_,
                .round = result_.rounds,
                .text = reply_,
                .prompt_tokens = reply.prompt_tokens,
                .reply_tokens = reply.reply_tokens});
}

void Run::replied(const ModelReply& reply) {
  if (over_ || heard_) return;
  heard_ = true;
  account(reply);
  // The stream may be the caller of this; it is dropped by a call of its own.
  end_timer_ = loop_.after(Duration(0), [this, error = reply.error, cut = reply.cut] {
    end_timer_ = 0;
    stream_.reset();
    if (!error.empty()) {
      finish({}, error);
    } else if (cut && asking_ != Asking::kTurn) {
      finish({}, fmt::format("the model's reply has more than {} tokens", options_.max_reply_tokens));
    } else if (asking_ == Asking::kPlan) {
      plan_ended();
    } else if (asking_ == Asking::kJoin) {
      joined();
    } else {
      turn_ended();
    }
  });
}

/// A mistake of the model's: it is told, within bounds, and goes on from there.
void Run::wrong(const std::string& error) {
  if (!heard_) account({.reply_tokens = -1});
  heard_ = true;
  tell(RunEvent::Kind::kWrong, error);
  end_timer_ = loop_.after(Duration(0), [this, error] {
    end_timer_ = 0;
    stream_.reset();
    if (corrections_ >= options_.max_corrections) {
      finish({}, "what the model wrote cannot be used: " + error);
      return;
    }
    ++corrections_;
    std::vector<ModelMessage>& messages =
        asking_ == Asking::kJoin && !options_.shared_prompt ? joiner_messages_ : messages_;
    messages.push_back({"assistant", reply_});
    if (asking_ == Asking::kPlan) {
      messages.push_back({"user", correction_request(error, parser_->next_id())});
      // Of a plan that is not streamed the good lines are known to nobody else.
      for (PlannedTask& task : held_) executor_->add(std::move(task));
      held_.clear();
      new_parser();
    } else {
      messages.push_back({"user", error + ". Write it again."});
    }
    ask(asking_, "correction");
  });
}

void Run::new_parser() {
  parser_ = std::make_unique<PlanParser>(
      tools_, known(),
      PlanParser::Hooks{
          .task =
              [this](PlannedTask task) {
                if (options_.streamed && options_.strategy == RunStrategy::kCompiler) {
                  executor_->add(std::move(task));
                } else {
                  held_.push_back(std::move(task));
                }
              },
          .thought = [this](const std::string& thought) { tell(RunEvent::Kind::kThought, thought); }});
}

void Run::plan() {
  ++result_.rounds;
  executor_->reopen();
  new_parser();
  first_id_ = parser_->next_id();
  ask(Asking::kPlan, "plan");
}

void Run::plan_ended() {
  try {
    parser_->end();
  } catch (const PlanError& error) {
    wrong(error.what());
    return;
  }
  for (PlannedTask& task : held_) executor_->add(std::move(task));
  held_.clear();
  messages_.push_back({"assistant", reply_});
  executor_->when_settled([this] { join(); });
  executor_->close();
}

void Run::join() {
  const bool last = result_.rounds >= options_.max_rounds;
  const std::string request =
      joiner_request(results_of(executor_->tasks(), options_.shared_prompt ? first_id_ : 1), last);
  if (options_.shared_prompt) {
    messages_.push_back({"user", request});
  } else {
    joiner_messages_ = {{"system", joiner_prompt()}, {"user", "Question: " + question_ + "\n" + request}};
  }
  ask(Asking::kJoin, "join");
}

void Run::joined() {
  const std::optional<JoinerDecision> decision = read_joiner(reply_);
  if (!decision) {
    wrong("the reply has no `Action: Finish(...)` or `Action: Replan(...)`");
    return;
  }
  if (!decision->thought.empty()) tell(RunEvent::Kind::kThought, decision->thought);
  if (decision->finish) {
    finish(decision->text, {});
    return;
  }
  if (result_.rounds >= options_.max_rounds) {
    finish({}, fmt::format("there is no answer after {} plans; the model misses: {}", result_.rounds,
                           shown(decision->text, kShownAnswerBytes)));
    return;
  }
  if (options_.shared_prompt) messages_.push_back({"assistant", reply_});
  int64_t next = 1;
  if (!executor_->tasks().empty()) next = executor_->tasks().rbegin()->first + 1;
  const std::string results =
      options_.shared_prompt ? "(given above)\n" : results_of(executor_->tasks(), first_id_);
  messages_.push_back({"user", replan_request(results, decision->text, next)});
  plan();
}

void Run::turn() {
  ++result_.rounds;
  executor_->reopen();
  new_parser();
  first_id_ = parser_->next_id();
  ask(Asking::kTurn, "turn");
}

/// Takes a turn's lines one by one; ReAct ends the reply after its first call.
void Run::take_turn(std::string_view piece) {
  while (!piece.empty() && !answering_) {
    const size_t end = piece.find('\n');
    line_ += piece.substr(0, end);
    answering_ = line_.starts_with(kAnswerMark);
    if (end == std::string_view::npos || answering_) return;
    piece.remove_prefix(end + 1);
    try {
      read_turn_line(std::exchange(line_, {}));
    } catch (const PlanError& error) {
      wrong(error.what());
      return;
    }
    if (parser_->tasks() > 0 && options_.strategy != RunStrategy::kParallel) {
      replied({.reply_tokens = -1});
      return;
    }
  }
}

/// Reads a line of a turn: a call after `Action:` or with a number; anything else is a thought.
void Run::read_turn_line(std::string line) {
  line.erase(0, line.find_first_not_of(" \t"));
  constexpr std::string_view kMark = "Action:";
  if (line.starts_with(kMark)) {
    line.erase(0, line.find_first_not_of(" \t", kMark.size()));
    parser_->add(fmt::format("{}. {}\n", parser_->next_id(), line));
  } else if (!line.empty() && (line[0] == '$' || (line[0] >= '0' && line[0] <= '9'))) {
    parser_->add(line + "\n");
  } else if (!line.empty()) {
    constexpr std::string_view kThought = "Thought:";
    tell(RunEvent::Kind::kThought, line.starts_with(kThought) ? line.substr(kThought.size()) : line);
  }
}

void Run::turn_ended() {
  const size_t answer = reply_.starts_with(kAnswerMark) ? 0 : reply_.find(std::string("\n") + kAnswerMark);
  if (answer != std::string::npos && parser_->tasks() == 0) {
    std::string text = reply_.substr(reply_.find(kAnswerMark, answer) + std::string_view(kAnswerMark).size());
    text.erase(0, text.find_first_not_of(" \t\n"));
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    finish(std::move(text), {});
    return;
  }
  try {
    if (!line_.empty() && !answering_) read_turn_line(std::exchange(line_, {}));
  } catch (const PlanError& error) {
    wrong(error.what());
    return;
  }
  if (parser_->tasks() == 0) {
    wrong("the reply has neither an `Action:` nor an `Answer:`");
    return;
  }
  for (PlannedTask& task : held_) executor_->add(std::move(task));
  held_.clear();
  messages_.push_back({"assistant", reply_});
  executor_->when_settled([this] {
    std::string results = results_of(executor_->tasks(), first_id_);
    if (result_.rounds >= options_.max_rounds) {
      finish({}, fmt::format("there is no answer after {} turns", result_.rounds));
      return;
    }
    messages_.push_back({"user", std::move(results)});
    turn();
  });
  executor_->close();
}

void Run::cancel() {
  finish({}, "it was called off");
}

void Run::finish(std::string answer, std::string error) {
  if (over_) return;
  over_ = true;
  loop_.forget(limit_timer_);
  loop_.forget(end_timer_);
  limit_timer_ = end_timer_ = 0;
  result_.answer = std::move(answer);
  result_.error = std::move(error);
  result_.time = loop_.now() - begin_;
  executor_->when_settled({});
  executor_->cancel_all();
  tell(result_.error.empty() ? RunEvent::Kind::kAnswer : RunEvent::Kind::kFailed,
       result_.error.empty() ? result_.answer : result_.error);
  executor_->when_idle([this] {
    // Nothing that is under way calls `ended`: whoever is told may end the run's life.
    end_timer_ = loop_.after(Duration(0), [this] {
      end_timer_ = 0;
      stream_.reset();
      const auto ended = std::move(hooks_.ended);
      if (ended) ended(result_);
    });
  });
}

}  // namespace verbatim::agent
