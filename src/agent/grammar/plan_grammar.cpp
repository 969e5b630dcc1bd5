#include "agent/grammar/plan_grammar.h"

#include <fmt/format.h>

#include "agent/grammar/call_grammar.h"

namespace verbatim::agent {

namespace {

constexpr size_t kMostReferences = 64;  // the latest tasks alone

using Ids = std::vector<int64_t>;

Structure any_call(const std::vector<ToolDeclaration>& tools, const Ids& ids) {
  std::vector<Structure> calls;
  for (const ToolDeclaration& tool : tools) calls.push_back(call_structure(tool, ids));
  return Structure::choice(std::move(calls));
}

Ids latest(const std::set<int64_t>& known) {
  Ids ids(known.begin(), known.end());
  if (ids.size() > kMostReferences) ids.erase(ids.begin(), ids.end() - kMostReferences);
  return ids;
}

}  // namespace

Structure plan_structure(const std::vector<ToolDeclaration>& tools, const std::set<int64_t>& known,
                         int64_t first, int64_t most) {
  Structure rest = Structure::text("join()");
  if (tools.empty()) return rest;
  for (int64_t id = first + most - 1; id >= first; --id) {
    std::set<int64_t> earlier = known;
    for (int64_t before = first; before < id; ++before) earlier.insert(before);
    rest = Structure::choice(
        {Structure::sequence({Structure::text(fmt::format("{}. ", id)), any_call(tools, latest(earlier)),
                              Structure::text("\n"), rest}),
         Structure::text("join()")});
  }
  return rest;
}

Structure joiner_structure(bool may_replan) {
  return Structure::regex(fmt::format("Thought: [^\\n]{{1,300}}\\nAction: {}\\([^\\n]{{1,300}}\\)",
                                      may_replan ? "(Finish|Replan)" : "Finish"));
}

Structure turn_structure(const std::vector<ToolDeclaration>& tools, const std::set<int64_t>& known,
                         bool parallel) {
  const Structure thought = Structure::regex("Thought: [^\\n]{1,300}\\n");
  const Structure answer = Structure::regex("Answer: [^\\n]{1,300}");
  if (tools.empty()) return Structure::sequence({thought, answer});
  const Structure action = Structure::sequence(
      {Structure::text("Action: "), any_call(tools, latest(known)), Structure::text("\n")});
  constexpr int kMostCalls = 8;
  return Structure::sequence(
      {thought, Structure::choice({Structure::repeat(action, 1, parallel ? kMostCalls : 1), answer})});
}

}  // namespace verbatim::agent
