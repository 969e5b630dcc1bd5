#pragma once

#include <functional>
#include <set>
#include <utility>

#include "agent/loop/loop.h"
#include "agent/tools/tool.h"

namespace verbatim::test {

/// A tool that answers after a time, as its maker says.
class SimulatedTool : public agent::Tool {
 public:
  /// What a call is to do.
  struct Behaviour {
    agent::Duration time{0};
    agent::ToolResult result = {};
    bool hangs = false;  ///< never answers by itself
    bool deaf = false;   ///< does not answer when it is cancelled either
  };
  using Script = std::function<Behaviour(const agent::Json& arguments)>;

  SimulatedTool(agent::Loop& loop, agent::ToolDeclaration declaration, Script script)
      : loop_(loop), declaration_(std::move(declaration)), script_(std::move(script)) {}

  const agent::ToolDeclaration& declaration() const override { return declaration_; }

  std::shared_ptr<agent::ToolCall> start(const agent::Json& arguments, agent::ToolHooks hooks) override {
    ++started;
    const Behaviour behaviour = script_(arguments);
    auto call = std::make_shared<Call>(*this, std::move(hooks), behaviour.deaf);
    if (!behaviour.hangs) call->end_after(behaviour.time, behaviour.result);
    return call;
  }

  int started = 0;
  int running = 0;  ///< calls that have neither ended nor been dropped
  int most_running = 0;

 private:
  class Call : public agent::ToolCall {
   public:
    Call(SimulatedTool& tool, agent::ToolHooks hooks, bool deaf)
        : tool_(tool), hooks_(std::move(hooks)), deaf_(deaf) {
      tool_.most_running = std::max(tool_.most_running, ++tool_.running);
    }
    ~Call() override {
      tool_.loop_.forget(timer_);
      if (!ended_) --tool_.running;
    }
    void end_after(agent::Duration time, agent::ToolResult result) {
      tool_.loop_.forget(timer_);
      timer_ = tool_.loop_.after(time, [this, result = std::move(result)] {
        timer_ = 0;
        ended_ = true;
        --tool_.running;
        const agent::ToolHooks hooks = hooks_;
        hooks.done(result);
      });
    }
    void cancel() override {
      if (!deaf_ && !ended_) end_after(agent::Duration(100), agent::ToolResult::failure("cancelled"));
    }

   private:
    SimulatedTool& tool_;
    agent::ToolHooks hooks_;
    bool deaf_;
    bool ended_ = false;
    uint64_t timer_ = 0;
  };

  agent::Loop& loop_;
  agent::ToolDeclaration declaration_;
  Script script_;
};

}  // namespace verbatim::test
