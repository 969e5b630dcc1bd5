#include "agent/plan/plan_parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/tools/schema_check.h"
#include "verbatim/text.h"

namespace verbatim::agent {

namespace {

constexpr size_t kNamesShown = 600;

std::string names_of(const std::vector<ToolDeclaration>& tools) {
  std::string names;
  for (const ToolDeclaration& tool : tools) names += (names.empty() ? "" : ", ") + tool.name;
  return names.empty() ? "there are none" : "they are " + shown(names, kNamesShown);
}

std::vector<std::string> parameters_of(const ToolDeclaration& tool) {
  std::vector<std::string> names;
  if (tool.parameters.is_object() && tool.parameters.contains("properties") &&
      tool.parameters["properties"].is_object()) {
    for (const auto& [name, schema] : tool.parameters["properties"].items()) names.push_back(name);
  }
  return names;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return shown(text, kNamesShown);
}

}  // namespace

std::string written(const PlannedTask& task) {
  std::string text = fmt::format("{}. {}(", task.id, task.tool);
  const Term& arguments = task.arguments;
  const auto add = [&](const std::string& key, const Term& value) {
    if (text.back() != '(') text += ", ";
    text += key + "=" + written(value);
  };
  if (arguments.kind == Term::Kind::kObject) {
    for (size_t i = 0; i < arguments.parts.size(); ++i) add(arguments.keys[i], arguments.parts[i]);
  } else {
    for (const auto& [key, value] : arguments.value.items()) add(key, Term::of(value));
  }
  return text + ")";
}

PlanParser::PlanParser(const std::vector<ToolDeclaration>& tools, std::set<int64_t> known, Hooks hooks,
                       Limits limits)
    : tools_(tools), known_(std::move(known)), hooks_(std::move(hooks)), limits_(limits) {
  if (!known_.empty()) next_id_ = *known_.rbegin() + 1;
}

void PlanParser::add(std::string_view piece) {
  while (!piece.empty() && !joined_) {
    const size_t end = piece.find('\n');
    line_ += piece.substr(0, end);
    if (line_.size() > limits_.line_bytes) {
      throw PlanError(number_ + 1, 0, fmt::format("the line has more than {} bytes", limits_.line_bytes));
    }
    if (end == std::string_view::npos) return;
    piece.remove_prefix(end + 1);
    const std::string line = std::exchange(line_, {});
    read_line(line);
  }
}

void PlanParser::end() {
  if (joined_) return;
  const std::string line = std::exchange(line_, {});
  if (!line.empty()) read_line(line);
  if (!joined_) throw PlanError(number_, 0, "the plan ends without `join()`, which is its last line");
}

void PlanParser::read_line(std::string_view text) {
  PlanLine line = read_plan_line(text, ++number_);
  switch (line.kind) {
    case PlanLine::Kind::kBlank:
      return;
    case PlanLine::Kind::kThought:
      if (hooks_.thought) hooks_.thought(line.thought);
      return;
    case PlanLine::Kind::kJoin:
      joined_ = true;
      return;
    case PlanLine::Kind::kCall:
      break;
  }
  PlannedTask task = checked(std::move(line.call));
  if (++tasks_ > limits_.tasks) {
    throw PlanError(number_, 0,
                    fmt::format("the plan has more than {} tasks; end it with `join()`", limits_.tasks));
  }
  known_.insert(task.id);
  next_id_ = task.id + 1;
  if (hooks_.task) hooks_.task(std::move(task));
}

PlannedTask PlanParser::checked(WrittenCall call) const {
  const auto fail = [&](const std::string& message) { throw PlanError(number_, 0, message); };
  if (call.id < next_id_) {
    fail(known_.count(call.id) != 0
             ? fmt::format("there is a task {} already; the next number is {}", call.id, next_id_)
             : fmt::format("task {} comes after task {}; numbers rise, and the next is {}", call.id,
                           next_id_ - 1, next_id_));
  }
  const ToolDeclaration* const tool = find_tool(tools_, call.tool);
  if (!tool) fail(fmt::format("there is no tool `{}`; {}", shown(call.tool, kShownBytes), names_of(tools_)));

  PlannedTask task{.id = call.id, .tool = call.tool};
  for (const auto& [name, value] : call.arguments) add_references(value, task.inputs);
  for (const int64_t id : task.inputs) {
    if (known_.count(id) != 0) continue;
    if (id == call.id) fail(fmt::format("task {} refers to its own result, ${}", id, id));
    if (id > call.id) {
      fail(fmt::format(
          "task {} refers to ${}, a later task; a call may use results of earlier tasks alone, or "
          "tasks would wait for each other in a cycle",
          call.id, id));
    }
    fail(fmt::format("task {} refers to ${}, and there is no task {}; write `\\$` for a dollar that is none",
                     call.id, id, id));
  }
  task.arguments = bound(call, *tool);
  if (const auto fault = schema_fault(task.arguments, tool->parameters, "")) {
    fail(fmt::format("the arguments of {} are wrong: {}", call.tool, *fault));
  }
  return task;
}

Term PlanParser::bound(WrittenCall& call, const ToolDeclaration& tool) const {
  const std::vector<std::string> parameters = parameters_of(tool);
  Term object{.kind = Term::Kind::kObject};
  size_t positional = 0;
  for (auto& [name, value] : call.arguments) {
    if (name.empty()) {
      if (positional == parameters.size()) {
        throw PlanError(number_, 0,
                        parameters.empty() ? fmt::format("{} takes no arguments by position", tool.name)
                                           : fmt::format("{} takes {} arguments at most: {}", tool.name,
                                                         parameters.size(), listed(parameters)));
      }
      name = parameters[positional++];
    } else if (std::find(object.keys.begin(), object.keys.end(), name) != object.keys.end()) {
      throw PlanError(number_, 0, fmt::format("the argument `{}` is given by position and by name", name));
    } else if (!parameters.empty() &&
               std::find(parameters.begin(), parameters.end(), name) == parameters.end() &&
               !tool.parameters.contains("additionalProperties")) {
      throw PlanError(number_, 0,
                      fmt::format("{} has no argument `{}`; it takes {}", tool.name, shown(name, kShownBytes),
                                  listed(parameters)));
    }
    object.keys.push_back(name);
    object.parts.push_back(std::move(value));
  }
  return object;
}

}  // namespace verbatim::agent
