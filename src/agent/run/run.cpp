#include "agent/run/run.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/grammar/call_grammar.h"
#include "agent/grammar/plan_grammar.h"
#include "agent/model/scripted_endpoint.h"
#include "agent/run/joiner.h"
#include "agent/run/prompts.h"
#include "verbatim/error.h"
#include "verbatim/text.h"

namespace verbatim::agent {

namespace {

/// The bytes of a reply for each token that it may have. An endpoint that says more minds no limit, and its
/// reply is ended before it fills the memory.
constexpr int64_t kBytesPerToken = 16;

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
  if (endpoint_.constrains()) {
    WritableTools held = writable(tools_);
    tools_ = std::move(held.tools);
    for (std::string& reason : held.left_out) tell(RunEvent::Kind::kLeftOut, std::move(reason));
  }
  messages_ = {{"system", system_prompt(options_, tools_)}};
  messages_.insert(messages_.end(), options_.earlier.begin(), options_.earlier.end());
  messages_.push_back({"user", question_});
  joiner_messages_ = {{"system", joiner_prompt()}, {"user", question_}};
  limit_timer_ = loop_.after(options_.max_time, [this] {
    limit_timer_ = 0;
    result_.out_of_time = !over_;
    run_out(fmt::format("the run took more than {:.3g} s", in_seconds(options_.max_time)));
  });
  try {
    if (options_.must_call && tools_.empty()) {
      result_.no_tool = true;
      finish({}, "a tool has to be called, and there is none that may be");
    } else if (options_.strategy == RunStrategy::kCompiler) {
      plan();
    } else {
      turn();
    }
  } catch (...) {  // no destructor runs for what is not made
    forget_timers();
    throw;
  }
}

Run::~Run() {
  forget_timers();
}

void Run::forget_timers() {
  loop_.forget(limit_timer_);
  loop_.forget(end_timer_);
  loop_.forget(stop_timer_);
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
  const int64_t left = options_.max_tokens - result_.prompt_tokens - result_.reply_tokens;
  if (left <= 0) {
    run_out(fmt::format("the run has used its {} tokens", options_.max_tokens));
    return;
  }
  most_tokens_ = std::min(options_.max_reply_tokens, left);
  tell(RunEvent::Kind::kAsked, name);
  if (over_) return;  // whoever is told may call the run off
  ++result_.requests;
  ModelRequest request{.messages = conversation(),
                       .max_tokens = most_tokens_,
                       .temperature = options_.temperature,
                       .seed = options_.seed};
  try {
    if (endpoint_.constrains()) {
      const std::optional<int64_t> room = endpoint_.room(request.messages);
      if (room && *room <= 0) {
        throw PromptTooLong(fmt::format(
            "{} leaves no room in the model's context",
            result_.requests == 1 ? "the question with the tools' descriptions" : "what the tools said"));
      }
      request.structure = structure_of(what, std::min(room.value_or(most_tokens_), most_tokens_));
    }
  } catch (const PromptTooLong& error) {
    (result_.requests == 1 ? result_.too_long : result_.limited) = true;
    finish({}, error.what());
    return;
  } catch (
      const Error& error) {  // a tool's schema allows nothing, or the model's template refuses the prompt
    finish({}, error.what());
    return;
  }
  stream_ =
      endpoint_.start(std::move(request), {.piece = [this](std::string_view piece) { take(piece); },
                                           .ended = [this](const ModelReply& reply) { replied(reply); }});
}

std::vector<ModelMessage>& Run::conversation() {
  return asking_ == Asking::kJoin && !options_.shared_prompt ? joiner_messages_ : messages_;
}

Structure Run::structure_of(Asking what, int64_t room) const {
  if (what == Asking::kPlan) {
    const bool must_call = options_.must_call && executor_->tasks().empty() && parser_->tasks() == 0;
    // Calls beyond the limit of all calls would fail.
    const int64_t left = options_.executor.calls - std::ssize(executor_->tasks());
    return plan_structure(tools_, known(), parser_->next_id(), std::min(kMostPlannedCalls, left), room,
                          must_call ? 1 : 0);
  }
  if (what == Asking::kJoin) return joiner_structure(result_.rounds < options_.max_rounds, room);
  return turn_structure(tools_, known(), options_.strategy == RunStrategy::kParallel, room);
}

/// Takes a piece of the reply. What follows the reply's end in the same piece is passed over, so that the
/// conversation does not depend on how an endpoint cuts its text.
void Run::take(std::string_view piece) {
  constexpr int64_t kMostTokens = int64_t{1} << 32;
  const auto most = static_cast<size_t>(std::min(most_tokens_, kMostTokens) * kBytesPerToken);
  const bool endless = piece.size() > most - reply_.size();
  piece = first_bytes(piece, most - reply_.size());
  while (!piece.empty() && !over_ && !heard_) {
    const size_t end = piece.find('\n');
    const std::string_view part = piece.substr(0, end == std::string_view::npos ? end : end + 1);
    piece.remove_prefix(part.size());
    reply_ += part;
    take_part(part);
  }
  if (endless && !over_ && !heard_) replied({.cut = true, .reply_tokens = -1});
}

/// Takes the next part of a line, or the rest of it with the line feed.
void Run::take_part(std::string_view part) {
  if (asking_ == Asking::kJoin) return;
  try {
    if (asking_ == Asking::kTurn) {
      take_turn(part);
    } else {
      parser_->add(part);
    }
  } catch (const PlanError& error) {
    wrong(error.what());
    return;
  }
  // What a model says after the plan's end, or ReAct's after its call, is of no use, so it is not waited for.
  // A grammar lets nothing follow, and a reply that ends by itself is counted exactly.
  if (endpoint_.constrains()) return;
  const bool ended = asking_ == Asking::kTurn
                         ? parser_->tasks() > 0 && options_.strategy != RunStrategy::kParallel
                         : parser_->joined();
  if (ended) replied({.reply_tokens = -1});
}

/// Counts what a reply took. Where the endpoint did not say, because it was cut short or never does, four
/// bytes are a token.
void Run::account(ModelReply reply) {
  if (reply.reply_tokens < 0 || (reply.prompt_tokens == 0 && reply.error.empty())) {
    reply.prompt_tokens = 0;
    for (const ModelMessage& message : conversation()) {
      reply.prompt_tokens += ScriptedEndpoint::tokens_of(message.content);
    }
    reply.reply_tokens = ScriptedEndpoint::tokens_of(reply_);
  }
  result_.prompt_tokens += reply.prompt_tokens;
  result_.cached_tokens += reply.cached_tokens;
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
  // A plan that has ended lacks nothing, whatever its reply ended by.
  const bool whole = asking_ == Asking::kPlan && parser_->joined();
  end_timer_ = loop_.after(Duration(0), [this, whole, error = reply.error, cut = reply.cut] {
    end_timer_ = 0;
    stream_.reset();
    if (whole) {
      plan_ended();
    } else if (!error.empty()) {
      finish({}, error);
    } else if (cut && most_tokens_ < options_.max_reply_tokens) {
      run_out(fmt::format("the run has used its {} tokens", options_.max_tokens));
    } else if (cut && asking_ != Asking::kTurn) {
      run_out(fmt::format("the model's reply has more than {} tokens", options_.max_reply_tokens));
    } else if (cut) {
      // Half an action is another action, and half an answer another answer.
      wrong(fmt::format("the reply has more than {} tokens", options_.max_reply_tokens));
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
    std::vector<ModelMessage>& messages = conversation();
    messages.push_back({"assistant", reply_});
    if (asking_ == Asking::kPlan) {
      messages.push_back({"user", correction_request(error, parser_->next_id())});
      // Of a plan that is not streamed the good lines are known to nobody else.
      for (PlannedTask& task : held_) executor_->add(std::move(task));
      held_.clear();
      new_parser();
    } else {
      messages.push_back({"user", error + ". Write it again."});
      if (asking_ == Asking::kTurn) {  // the whole turn is written again
        held_.clear();
        new_parser();
      }
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
    run_out(fmt::format("there is no answer after {} plans; the model misses: {}", result_.rounds,
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

void Run::cancel() {
  finish({}, "it was called off");
}

void Run::run_out(std::string error) {
  if (over_) return;
  result_.limited = true;
  finish({}, std::move(error));
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
  // The stream may be the caller of this. Without one there is no timer, as recordings number timers.
  if (stream_) {
    stop_timer_ = loop_.after(Duration(0), [this] {
      stop_timer_ = 0;
      stream_.reset();
    });
  }
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
