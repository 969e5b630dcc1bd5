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
  constexpr CallLimits kLimits[] = {{}, {50, 4}, {25, 2}, {12, 1}};
  const auto enough = static_cast<size_t>(std::min<int64_t>(most, 4));
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
  constexpr int64_t kCharacterBytes = 4;
  const int64_t most = std::clamp<int64_t>((room.value_or(1 << 20) - kMarks) / (2 * kCharacterBytes), 3, 300);
  return Structure::regex(fmt::format("Thought: [^\\n]{{1,{0}}}\\nAction: {1}\\([^\\n]{{1,{0}}}\\)", most,
                                      may_replan ? "(Finish|Replan)" : "Finish"));
}

Structure turn_structure(const std::vector<ToolDeclaration>& tools, const std::set<int64_t>& known,
                         bool parallel) {
  const Structure thought = Structure::regex("Thought: [^\\n]{1,300}\\n");
  const Structure answer = Structure::regex("Answer: [^\\n]{1,300}");
  if (tools.empty()) return Structure::sequence({thought, answer});
  const Structure action = Structure::sequence(
      {Structure::text("Action: "), any_call(tools, latest(known)).structure, Structure::text("\n")});
  constexpr int kMostCalls = 8;
  return Structure::sequence(
      {thought, Structure::choice({Structure::repeat(action, 1, parallel ? kMostCalls : 1), answer})});
}

}  // namespace verbatim::agent
