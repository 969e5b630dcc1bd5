#include "agent/grammar/plan_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "agent/grammar/call_grammar.h"

namespace verbatim::agent {

namespace {

constexpr size_t kMostReferences = 64;  // the latest tasks alone

using Ids = std::vector<int64_t>;

Bounded any_call(const std::vector<ToolDeclaration>& tools, const Ids& ids, const CallLimits& limits = {}) {
  std::vector<Bounded> calls;
  for (const ToolDeclaration& tool : tools) calls.push_back(call_structure(tool, ids, limits));
  return Bounded::choice(std::move(calls));
}

Ids latest(const std::set<int64_t>& known) {
  Ids ids(known.begin(), known.end());
  if (ids.size() > kMostReferences) ids.erase(ids.begin(), ids.end() - kMostReferences);
  return ids;
}

/// How large values get, from the largest, which a room that is small makes smaller until there are enough
/// calls.
constexpr CallLimits kLimits[] = {{}, {50, 4}, {25, 2}, {12, 1}};
constexpr int64_t kEnoughCalls = 4;
constexpr int64_t kCharacterBytes = 4;  // at most

constexpr char kEnd[] = "join()";
constexpr int64_t kEndTokens = sizeof(kEnd);  // and the token that ends the reply

/// The lines of a plan, as many as end within `room` tokens whatever they say.
std::vector<Bounded> lines_of(const std::vector<ToolDeclaration>& tools, const std::set<int64_t>& known,
                              int64_t first, int64_t most, const CallLimits& limits,
                              std::optional<int64_t> room) {
  std::vector<Bounded> lines;
  std::set<int64_t> earlier = known;
  int64_t bytes = kEndTokens;
  for (int64_t id = first; id < first + most; ++id) {
    Bounded line = Bounded::sequence({Bounded::text(fmt::format("{}. ", id)),
                                      any_call(tools, latest(earlier), limits), Bounded::text("\n")});
    bytes += line.bytes;
    if (room && bytes > *room) break;
    lines.push_back(std::move(line));
    earlier.insert(id);
  }
  return lines;
}

}  // namespace

Structure plan_structure(const std::vector<ToolDeclaration>& tools, const std::set<int64_t>& known,
                         int64_t first, int64_t most, std::optional<int64_t> room, size_t least) {
  Structure rest = Structure::text(kEnd);
  if (tools.empty() || most < 1) return rest;
  const auto enough = static_cast<size_t>(std::min<int64_t>(most, kEnoughCalls));
  std::vector<Bounded> lines;
  for (const CallLimits& limits : kLimits) {
    lines = lines_of(tools, known, first, most, limits, room);
    if (lines.size() >= enough) break;
  }
  if (lines.empty()) lines = lines_of(tools, known, first, 1, std::end(kLimits)[-1], std::nullopt);
  for (size_t i = lines.size(); i-- > 0;) {
    rest = Structure::sequence({lines[i].structure, rest});
    if (i >= least) rest = Structure::choice({rest, Structure::text(kEnd)});
  }
  return rest;
}

Structure joiner_structure(bool may_replan, std::optional<int64_t> room) {
  constexpr int64_t kMarks = 40;  // bytes of what stands around thought and answer, and the reply's end
  const int64_t most = std::clamp<int64_t>((room.value_or(1 << 20) - kMarks) / (2 * kCharacterBytes), 3, 300);
  return Structure::regex(fmt::format("Thought: [^\\n]{{1,{0}}}\\nAction: {1}\\([^\\n]{{1,{0}}}\\)", most,
                                      may_replan ? "(Finish|Replan)" : "Finish"));
}

Structure turn_structure(const std::vector<ToolDeclaration>& tools, const std::set<int64_t>& known,
                         bool parallel, std::optional<int64_t> room) {
  constexpr int64_t kMarks = 20;  // bytes of `Thought: `, `Answer: ` and a line feed, and the reply's end
  constexpr int64_t kMostCharacters = 300;
  constexpr int64_t kThoughtShare = 4;
  const int64_t all = room.value_or(1 << 20) - kMarks;
  const auto characters = [&](int64_t bytes) {
    return std::clamp<int64_t>(bytes / kCharacterBytes, 3, kMostCharacters);
  };
  int64_t most_thought = characters(all / kThoughtShare);
  const int64_t left = all - most_thought * kCharacterBytes;
  const auto thought = [&] {
    return Structure::regex(fmt::format("Thought: [^\\n]{{1,{}}}\\n", most_thought));
  };
  const Structure answer = Structure::regex(fmt::format("Answer: [^\\n]{{1,{}}}", characters(left)));
  if (tools.empty()) return Structure::sequence({thought(), answer});
  const int64_t most = parallel ? 8 : 1;
  const int64_t enough = std::min<int64_t>(most, kEnoughCalls);
  std::optional<Bounded> action;
  for (const CallLimits& limits : kLimits) {
    action = Bounded::sequence(
        {Bounded::text("Action: "), any_call(tools, latest(known), limits), Bounded::text("\n")});
    if (left / action->bytes >= enough) break;
  }
  const auto calls = static_cast<int>(std::clamp<int64_t>(left / action->bytes, 1, most));
  if (action->bytes > left) most_thought = std::min(most_thought, characters(all - action->bytes));
  return Structure::sequence(
      {thought(), Structure::choice({Structure::repeat(action->structure, 1, calls), answer})});
}

}  // namespace verbatim::agent
