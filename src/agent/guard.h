#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/loop/loop.h"
#include "agent/model/endpoint.h"
#include "agent/tools/tool.h"

namespace verbatim::agent {

/// A loop, an endpoint and tools for one run that share others' with further runs. What a call of the run
/// throws is told to `failed`, and to nobody else: neither the loop nor a tool that all share meets it.
class Guard {
 public:
  using Failed = std::function<void(const std::string& what)>;

  /// All three must outlive the guard, and the guard the run. `failed` may be called within the run, which it
  /// must leave as it is until that call has returned.
  Guard(Loop& loop, Endpoint& endpoint, const ToolSet& tools, Failed failed);
  ~Guard();

  Loop& loop();
  Endpoint& endpoint();
  const ToolSet& tools() const { return tools_; }

 private:
  class GuardedLoop;
  class GuardedEndpoint;
  class GuardedTool;
  std::unique_ptr<GuardedLoop> loop_;
  std::unique_ptr<GuardedEndpoint> endpoint_;
  ToolSet tools_;
};

}  // namespace verbatim::agent
