#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/plan/line_reader.h"
#include "agent/plan/plan_error.h"
#include "agent/plan/term.h"
#include "agent/tools/declaration.h"

namespace verbatim::agent {

/// A call of a plan that was found to be right: the tool is there, the arguments fit its schema as far as
/// they are known, and they refer to earlier tasks alone.
struct PlannedTask {
  int64_t id = 0;
  std::string tool;
  Term arguments = {};            ///< an object with a member for each argument
  std::set<int64_t> inputs = {};  ///< the tasks that the arguments refer to
};

/// The call as a plan writes it: `3. math("$1 + 2")`.
std::string written(const PlannedTask& task);

/// Reads a plan while a model writes it (thesis, 6.3), and hands over each task when its line is whole.
///
/// The numbers of tasks rise, and arguments name smaller ones, so a plan has no cycle. The first thing that
/// is wrong throws a PlanError and ends the plan; the tasks handed over before stay valid.
class PlanParser {
 public:
  struct Limits {
    int64_t tasks = 1000;          ///< the most in one plan
    size_t line_bytes = 64 << 10;  ///< the most in a line
  };
  struct Hooks {
    std::function<void(PlannedTask)> task = {};
    std::function<void(const std::string&)> thought = {};
  };

  /// `known` are tasks of earlier plans, to which arguments may refer as well; new numbers are above them.
  /// The tools must outlive the parser.
  PlanParser(const std::vector<ToolDeclaration>& tools, std::set<int64_t> known, Hooks hooks, Limits limits);
  PlanParser(const std::vector<ToolDeclaration>& tools, std::set<int64_t> known, Hooks hooks)
      : PlanParser(tools, std::move(known), std::move(hooks), Limits()) {}

  /// Takes the next piece of the text. What comes after the end of the plan is passed over. Throws PlanError.
  void add(std::string_view piece);
  /// Ends the text. Throws PlanError for what the last line has wrong, and for a plan without `join()`.
  void end();

  /// Whether the plan has ended with `join()` or `finish()`.
  bool joined() const { return joined_; }
  /// The number that the next task should have.
  int64_t next_id() const { return next_id_; }
  /// The number of tasks handed over.
  int64_t tasks() const { return tasks_; }

 private:
  void read_line(std::string_view line);
  PlannedTask checked(WrittenCall call) const;
  Term bound(WrittenCall& call, const ToolDeclaration& tool) const;

  const std::vector<ToolDeclaration>& tools_;
  std::set<int64_t> known_;
  Hooks hooks_;
  Limits limits_;
  std::string line_;
  int64_t number_ = 0;  // of the line read last
  int64_t next_id_ = 1;
  int64_t tasks_ = 0;
  bool joined_ = false;
};

}  // namespace verbatim::agent
