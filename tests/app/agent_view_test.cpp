#ifdef VERBATIM_WITH_AGENT

#include "agent_view.h"

#include <gtest/gtest.h>

namespace verbatim {
namespace {

TEST(AgentView, KeepsLinesBackWhileItIsPaused) {
  for (const bool live : {false, true}) {
    app::AgentView view(live);
    const AgentEvent thought{.kind = "thought", .text = "hm"};
    view.pause();
    testing::internal::CaptureStderr();
    view.add(thought);
    view.draw();
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    testing::internal::CaptureStderr();
    view.resume();
    EXPECT_NE(testing::internal::GetCapturedStderr().find("thought: hm\n"), std::string::npos);
  }
}

}  // namespace
}  // namespace verbatim

#endif
