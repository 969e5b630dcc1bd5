#include "accelerator/workload/steps.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "accelerator/fail.h"
#include "accelerator/paper/equations.h"

namespace verbatim::accelerator {

namespace {

using Json = nlohmann::json;

constexpr int64_t kMostCount = int64_t{1} << 22;
constexpr int64_t kMostStepRows = 4096;

int64_t sum_of(const std::vector<Step>& steps, int64_t Step::*what) {
  int64_t sum = 0;
  for (const Step& step : steps) sum += step.*what;
  return sum;
}

int64_t count(const Json& object, const char* name, int64_t most, const std::string& where) {
  const auto found = object.find(name);
  if (found == object.end()) bad_input("{}: \"{}\" is missing", where, name);
  if (!found->is_number_integer() || found->is_number_float()) {
    bad_input("{}: \"{}\" must be a whole number", where, name);
  }
  if (*found < 0 || *found > most) bad_input("{}: \"{}\" must be from 0 to {}", where, name, most);
  return found->get<int64_t>();
}

Step step_of(const Json& object, const std::string& where) {
  Step step{.position = count(object, "position", kMostCount, where),
            .drafted = count(object, "drafted", kMostStepRows, where),
            .accepted = count(object, "accepted", kMostStepRows, where),
            .draft_passes = count(object, "draft_passes", kMostCount, where),
            .rows = count(object, "rows", kMostStepRows, where)};
  if (step.position < 1) bad_input("{}: \"position\" must be at least 1", where);
  if (step.accepted > step.drafted) {
    bad_input("{}: accepted {} of {} drafted tokens", where, step.accepted, step.drafted);
  }
  if (step.rows != step.drafted + 1) {
    bad_input("{}: {} rows do not verify {} drafted tokens", where, step.rows, step.drafted);
  }
  return step;
}

/// Compares a trace with the sums in its last line.
void check_end(const Steps& steps, const Json& end, const std::string& where) {
  const auto compare = [&](const char* name, int64_t sum) {
    const int64_t said = count(end, name, kMostCount, where);
    if (said != sum) bad_input("{}: \"{}\" is {}, and the steps sum up to {}", where, name, said, sum);
  };
  compare("steps", static_cast<int64_t>(steps.steps.size()));
  compare("drafted", steps.drafted());
  compare("accepted", steps.accepted());
  compare("draft_passes", steps.draft_passes());
}

Steps parse_trace(std::string_view text, const std::string& where) {
  Steps steps;
  int64_t number = 0;
  bool ended = false;
  while (!text.empty()) {
    ++number;
    const std::string place = fmt::format("{}: line {}", where, number);
    if (ended) bad_input("{}: something follows the end of the trace", place);
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) bad_input("{}: the trace is cut off here", place);
    const Json object = Json::parse(text.substr(0, end), nullptr, false);
    text.remove_prefix(end + 1);
    if (!object.is_object()) bad_input("{}: is no JSON object; write a trace with generate --trace", place);
    if (object.contains("end")) {
      check_end(steps, object, place);
      steps.prompt_tokens = count(object, "prompt_tokens", kMostCount, place);
      if (!steps.steps.empty() && steps.steps.front().position != steps.prompt_tokens + 1) {
        bad_input("{}: a prompt of {} tokens does not end before position {}, at which the steps begin",
                  place, steps.prompt_tokens, steps.steps.front().position);
      }
      ended = true;
      continue;
    }
    const Step step = step_of(object, place);
    if (!steps.steps.empty()) {
      const Step& before = steps.steps.back();
      const int64_t expected = before.position + before.accepted + 1;
      if (step.position != expected) {
        bad_input("{}: position {} does not follow the step before it, which ended at {}", place,
                  step.position, expected);
      }
    }
    steps.steps.push_back(step);
  }
  if (!ended) bad_input("{}: the trace is cut off: its last line, with the sums, is missing", where);
  return steps;
}

/// Spreads a sum over places as evenly as whole numbers can be.
int64_t evenly(int64_t sum, int64_t place, int64_t places) {
  return sum * (place + 1) / places - sum * place / places;
}

Steps spread(const Json& object, const std::string& where) {
  const int64_t places = count(object, "target_passes", kMostCount, where);
  const int64_t drafted = count(object, "drafted", kMostCount, where);
  const int64_t accepted = count(object, "accepted", kMostCount, where);
  const int64_t passes = count(object, "draft_passes", kMostCount, where);
  if (accepted > drafted) bad_input("{}: accepted {} of {} drafted tokens", where, accepted, drafted);
  if (places == 0 && drafted > 0) bad_input("{}: tokens were drafted, and no pass verified them", where);
  if (places > 0 && drafted / places >= kMostStepRows) bad_input("{}: too many drafted tokens a step", where);
  Steps steps{.prompt_tokens = count(object, "prompt_tokens", kMostCount, where), .steps = {}};
  int64_t owed = 0;  // accepted tokens that found no drafted one in the steps before
  for (int64_t i = 0; i < places; ++i) {
    Step step{.position = steps.prompt_tokens + 1,
              .drafted = evenly(drafted, i, places),
              .accepted = 0,
              .draft_passes = evenly(passes, i, places),
              .rows = evenly(drafted, i, places) + 1};
    owed += evenly(accepted, i, places);
    step.accepted = std::min(owed, step.drafted);
    owed -= step.accepted;
    steps.steps.push_back(step);
  }
  // Where the last steps drafted too little, earlier ones have room.
  for (auto step = steps.steps.rbegin(); owed > 0 && step != steps.steps.rend(); ++step) {
    const int64_t more = std::min(owed, step->drafted - step->accepted);
    step->accepted += more;
    owed -= more;
  }
  for (size_t i = 1; i < steps.steps.size(); ++i) {
    steps.steps[i].position = steps.steps[i - 1].position + steps.steps[i - 1].accepted + 1;
  }
  return steps;
}

}  // namespace

int64_t Steps::drafted() const {
  return sum_of(steps, &Step::drafted);
}
int64_t Steps::accepted() const {
  return sum_of(steps, &Step::accepted);
}
int64_t Steps::draft_passes() const {
  return sum_of(steps, &Step::draft_passes);
}
int64_t Steps::tokens() const {
  return accepted() + static_cast<int64_t>(steps.size());
}

Steps parse_steps(std::string_view text, const std::string& where) {
  if (text.empty()) bad_input("{} is empty: write a trace with generate --trace", where);
  const Json whole = Json::parse(text, nullptr, false);
  if (whole.is_object() && whole.contains("target_passes")) return spread(whole, where);
  return parse_trace(text, where);
}

Steps steps_of(double draft_length, double acceptance, int64_t prompt_tokens, int64_t tokens) {
  if (!(acceptance >= 0 && acceptance <= 1)) {
    bad_input("the acceptance rate must be from 0 to 1, not {}", acceptance);
  }
  if (!(draft_length >= 0 && draft_length <= 64)) {
    bad_input("the draft length must be from 0 to 64, not {}", draft_length);
  }
  const double kept = accept_length(draft_length, acceptance) - 1;
  Steps steps{.prompt_tokens = prompt_tokens, .steps = {}};
  double owed_drafted = 0;
  double owed_kept = 0;
  int64_t position = prompt_tokens + 1;
  for (int64_t left = tokens; left > 0;) {
    owed_drafted += draft_length;
    owed_kept += kept;
    // Half a thousandth above, so that rounding errors of the sums never cost a whole token.
    const int64_t drafted = std::min(static_cast<int64_t>(owed_drafted + 5e-4), left - 1);
    const int64_t accepted = std::min({static_cast<int64_t>(owed_kept + 5e-4), drafted, left - 1});
    owed_drafted -= static_cast<double>(drafted);
    owed_kept -= static_cast<double>(accepted);
    steps.steps.push_back({.position = position,
                           .drafted = drafted,
                           .accepted = accepted,
                           .draft_passes = drafted,
                           .rows = drafted + 1});
    position += accepted + 1;
    left -= accepted + 1;
  }
  return steps;
}

}  // namespace verbatim::accelerator
