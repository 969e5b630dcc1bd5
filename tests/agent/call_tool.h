#pragma once

#include <gtest/gtest.h>

#include <string>

#include "agent/loop/real_loop.h"
#include "agent/tools/tool.h"

namespace verbatim::test {

/// Calls a tool and waits for what it comes to, cancelling the call after a time unless that is 0.
inline agent::ToolResult call_tool(agent::RealLoop& loop, agent::Tool& tool, const agent::Json& arguments,
                                   agent::Duration cancel_after = agent::Duration(0)) {
  agent::ToolResult result;
  std::shared_ptr<agent::ToolCall> call;
  int answers = 0;
  loop.post([&] {
    call = tool.start(arguments, {.done = [&](agent::ToolResult got) {
                        ++answers;
                        result = std::move(got);
                        loop.stop();
                      }});
    EXPECT_EQ(answers, 0);  // not from within start()
  });
  if (cancel_after > agent::Duration(0)) loop.after(cancel_after, [&] { call->cancel(); });
  const uint64_t limit = loop.after(std::chrono::seconds(60), [&] { loop.stop(); });
  loop.run();
  loop.forget(limit);
  EXPECT_EQ(answers, 1);
  return result;
}

}  // namespace verbatim::test
