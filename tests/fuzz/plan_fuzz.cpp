// Any text as a plan, in pieces: a PlanError, or tasks whose lines, written anew, are read as the same tasks.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "agent/plan/plan_parser.h"

namespace {

using namespace verbatim::agent;

const std::vector<ToolDeclaration>& tools() {
  static const std::vector<ToolDeclaration> all = {
      {.name = "search",
       .parameters = Json::parse(R"({"properties": {"query": {"type": "string"}}, "required": ["query"]})")},
      {.name = "any",
       .parameters = Json::parse(
           R"({"properties": {"x": {}, "y": {"type": "integer", "minimum": 1}, "z": {"enum": [1, "$1"]}}})")}};
  return all;
}

std::string read(std::string_view text, size_t piece, bool& joined) {
  std::string tasks;
  PlanParser parser(tools(), {}, {.task = [&](const PlannedTask& task) { tasks += written(task) + "\n"; }});
  try {
    while (!text.empty()) {
      parser.add(text.substr(0, piece));
      text.remove_prefix(std::min(piece, text.size()));
    }
    parser.end();
  } catch (const PlanError&) {
  }
  joined = parser.joined();
  return tasks;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  bool joined = false;
  bool whole = false;
  const std::string tasks = read(text, data[0] % 16U + 1, joined);
  if (read(text, text.size() + 1, whole) != tasks || whole != joined) std::abort();
  if (read(tasks + "join()\n", 1 << 20, whole) != tasks || !whole) std::abort();
  return 0;
}
