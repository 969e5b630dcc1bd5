#pragma once

#include <functional>
#include <utility>

#include "agent/tools/tool.h"

namespace verbatim::agent {

/// A call that does nothing but end with a result after a time, whoever cancels it.
std::shared_ptr<ToolCall> answer_after(Loop& loop, Duration time, ToolHooks hooks, ToolResult result);

/// A tool that computes its answer at once, in a time that its maker bounds. What it throws is a failure.
class InstantTool : public Tool {
 public:
  using Compute = std::function<Json(const Json& arguments)>;
  InstantTool(Loop& loop, ToolDeclaration declaration, Compute compute)
      : loop_(loop), declaration_(std::move(declaration)), compute_(std::move(compute)) {}

  const ToolDeclaration& declaration() const override { return declaration_; }
  std::shared_ptr<ToolCall> start(const Json& arguments, ToolHooks hooks) override;

 private:
  Loop& loop_;
  ToolDeclaration declaration_;
  Compute compute_;
};

}  // namespace verbatim::agent
