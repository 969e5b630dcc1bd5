#include "agent/tools/instant_tool.h"

#include <exception>

namespace verbatim::agent {

namespace {

class InstantCall : public ToolCall {
 public:
  InstantCall(Loop& loop, ToolHooks hooks, ToolResult result) : loop_(loop) {
    timer_ = loop_.after(Duration(0), [this, done = std::move(hooks.done), result = std::move(result)] {
      timer_ = 0;
      done(result);
    });
  }
  ~InstantCall() override { loop_.forget(timer_); }
  void cancel() override {}  // the answer comes next

 private:
  Loop& loop_;
  uint64_t timer_ = 0;
};

}  // namespace

std::shared_ptr<ToolCall> InstantTool::start(const Json& arguments, ToolHooks hooks) {
  ToolResult result;
  try {
    result = ToolResult::of(compute_(arguments));
  } catch (const std::exception& error) {
    result = ToolResult::failure(error.what());
  }
  return std::make_shared<InstantCall>(loop_, std::move(hooks), std::move(result));
}

}  // namespace verbatim::agent
