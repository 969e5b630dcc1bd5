#include <fmt/format.h>

#include "agent/run/prompts.h"
#include "agent/run/run.h"

namespace verbatim::agent {

namespace {

constexpr const char* kAnswerMark = "Answer:";

}  // namespace

void Run::turn() {
  ++result_.rounds;
  executor_->reopen();
  new_parser();
  first_id_ = parser_->next_id();
  ask(Asking::kTurn, "turn");
}

/// Takes a part of a turn's line; after `Answer:` at a line's start all is the answer.
void Run::take_turn(std::string_view part) {
  if (answering_) return;
  const bool whole = part.ends_with('\n');
  line_ += part.substr(0, part.size() - (whole ? 1 : 0));
  answering_ = line_.starts_with(kAnswerMark);
  if (whole && !answering_) read_turn_line(std::exchange(line_, {}));
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
      run_out(fmt::format("there is no answer after {} turns", result_.rounds));
      return;
    }
    messages_.push_back({"user", std::move(results)});
    turn();
  });
  executor_->close();
}

}  // namespace verbatim::agent
