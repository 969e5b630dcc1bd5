#include "agent/tools/instant_tool.h"

#include <exception>

namespace verbatim::agent {

namespace {

class LaterCall : public ToolCall {
 public:
  LaterCall(Loop& loop, Duration time, ToolHooks hooks, ToolResult result) : loop_(loop) {
    timer_ = loop_.after(time, [this, done = std::move(hooks.done), result = std::move(result)] {
      timer_ = 0;
      done(result);
    });
  }
  ~LaterCall() override { loop_.forget(timer_); }
  void cancel() override {}  // the answer comes by itself

 private:
  Loop& loop_;
  uint64_t timer_ = 0;
};

}  // namespace

std::shared_ptr<ToolCall> answer_after(Loop& loop, Duration time, ToolHooks hooks, ToolResult result) {
  return std::make_shared<LaterCall>(loop, time, std::move(hooks), std::move(result));
}

std::shared_ptr<ToolCall> InstantTool::start(const Json& arguments, ToolHooks hooks) {
  ToolResult result;
  try {
    result = ToolResult::of(compute_(arguments));
  } catch (const std::exception& error) {
    result = ToolResult::failure(error.what());
  }
  return answer_after(loop_, Duration(0), std::move(hooks), std::move(result));
}

}  // namespace verbatim::agent
