#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "capi/c_model.h"

namespace verbatim::test {
namespace callbacks_test {
namespace {

using ::testing::HasSubstr;

constexpr const char* kPrompt = "abcabcabc";

TEST(CStream, IsCancelledByItsCallback) {
  // The engine makes a second piece only when the callback has the first, and a third only when the callback
  // has the second, which it gets after the stream was cancelled.
  struct Turns {
    std::mutex mutex;
    std::condition_variable changed;
    int made = 0;
    int got = 0;
    void wait_for(std::unique_lock<std::mutex>& lock, const std::function<bool()>& condition) {
      changed.notify_all();
      EXPECT_TRUE(changed.wait_for(lock, std::chrono::minutes(5), condition));
    }
  } turns;
  const CEngine engine;
  verbatim_generate_options options = c_options(200);
  options.user = &turns;
  options.notify = [](void* user) {
    auto& self = *static_cast<Turns*>(user);
    const std::lock_guard lock(self.mutex);
    ++self.made;
    self.changed.notify_all();
  };
  options.cancelled = [](void* user) {
    auto& self = *static_cast<Turns*>(user);
    std::unique_lock lock(self.mutex);
    self.wait_for(lock, [&] { return self.got >= std::min(self.made, 2); });
    return 0;
  };
  const auto stop_at_once = [](const verbatim_piece*, void* user) {
    auto& self = *static_cast<Turns*>(user);
    std::unique_lock lock(self.mutex);
    const bool first = ++self.got == 1;
    self.changed.notify_all();
    if (first) self.wait_for(lock, [&] { return self.made >= 2; });
    return first ? 1 : 0;
  };
  verbatim_stream* stream = nullptr;
  ASSERT_EQ(verbatim_engine_submit_text(engine, kPrompt, VERBATIM_TO_NUL, &options, &stream), VERBATIM_OK);
  verbatim_result* result = nullptr;
  ASSERT_EQ(verbatim_stream_run(stream, stop_at_once, &turns, &result), VERBATIM_OK);
  verbatim_stats stats;
  verbatim_result_stats(result, &stats, sizeof stats);
  EXPECT_EQ(stats.finish, VERBATIM_FINISH_CANCELLED);
  EXPECT_LT(stats.generated_tokens, 200);
  EXPECT_THAT(same_answer(kPrompt, 200).text, ::testing::StartsWith(text_of(result)));
  int32_t done = 0;
  EXPECT_EQ(verbatim_stream_done(stream, &done), VERBATIM_OK);
  EXPECT_EQ(done, 1);
  verbatim_result_close(result);
  verbatim_stream_close(stream);
}

TEST(CEngineCallbacks, MayNotCallTheEngineOrWait) {
  struct Seen {
    verbatim_engine* engine = nullptr;
    verbatim_stream* stream = nullptr;
    std::atomic<int> refused{0};
    std::atomic<int> asked{0};
  } seen;
  const CEngine engine;
  seen.engine = engine;
  verbatim_generate_options options = c_options(8);
  options.user = &seen;
  options.cancelled = [](void* user) {
    auto& self = *static_cast<Seen*>(user);
    ++self.asked;
    verbatim_engine_stats stats;
    verbatim_result* result = nullptr;
    self.refused += verbatim_engine_close(self.engine) == VERBATIM_USAGE &&
                    verbatim_engine_describe(self.engine, &stats, sizeof stats) == VERBATIM_USAGE &&
                    verbatim_stream_wait(nullptr, &result) == VERBATIM_USAGE;
    return 0;
  };
  verbatim_stream* stream = nullptr;
  ASSERT_EQ(verbatim_engine_submit_text(engine, kPrompt, VERBATIM_TO_NUL, &options, &stream), VERBATIM_OK);
  verbatim_result* result = nullptr;
  ASSERT_EQ(verbatim_stream_wait(stream, &result), VERBATIM_OK);
  EXPECT_GT(seen.asked, 0);
  EXPECT_EQ(seen.refused, seen.asked);
  verbatim_result_close(result);
  verbatim_stream_close(stream);
}

TEST(CEngineCallbacks, NeverOwnTheEngineThatIsClosed) {
  struct Seen {
    verbatim_engine* engine = nullptr;
    std::atomic<bool> asked{false};
    std::atomic<bool> closing{false};
  };
  for (int round = 0; round < 5; ++round) {
    Seen seen;
    ASSERT_EQ(verbatim_engine_open(c_model(), nullptr, &seen.engine), VERBATIM_OK);
    verbatim_generate_options options = c_options(8);
    options.user = &seen;
    options.cancelled = [](void* user) {
      auto& self = *static_cast<Seen*>(user);
      self.asked = true;
      verbatim_engine_stats stats;
      // With an engine of its own for a moment, one of these calls would end the engine on its own thread.
      for (int left = 5000; left > 0; left -= self.closing) {
        EXPECT_EQ(verbatim_engine_describe(self.engine, &stats, sizeof stats), VERBATIM_USAGE);
      }
      return 1;
    };
    verbatim_stream* stream = nullptr;
    ASSERT_EQ(verbatim_engine_submit_text(seen.engine, kPrompt, VERBATIM_TO_NUL, &options, &stream),
              VERBATIM_OK);
    while (!seen.asked) std::this_thread::yield();
    seen.closing = true;
    EXPECT_EQ(verbatim_engine_close(seen.engine), VERBATIM_OK);
    verbatim_stream_close(stream);
  }
}

TEST(CEngineCallbacks, OfProgressMayNotCallTheEngine) {
  struct Seen {
    verbatim_engine* engine = nullptr;
    int told = 0;
    int refused = 0;
    std::string message;
  } seen;
  const CEngine engine;
  seen.engine = engine;
  const auto progress = [](double, void* user) {
    auto& self = *static_cast<Seen*>(user);
    ++self.told;
    self.refused += verbatim_engine_prepare(self.engine, "plain", nullptr, nullptr) == VERBATIM_USAGE;
    self.message = verbatim_error_message();
    return 1;
  };
  EXPECT_REFUSED(verbatim_engine_prepare(engine, "auto", progress, &seen), VERBATIM_CANCELLED, "progress");
  EXPECT_EQ(seen.told, 1);
  EXPECT_EQ(seen.refused, 1);
  EXPECT_THAT(seen.message, HasSubstr("progress callback of verbatim_engine_prepare()"));
  verbatim_engine_stats stats;
  EXPECT_EQ(verbatim_engine_describe(engine, &stats, sizeof stats), VERBATIM_OK);
}

TEST(CBatch, CallsNothingAnyMoreWhenItHasReturned) {
  struct Seen {
    std::atomic<bool> returned{false};
    std::atomic<int> ends{0};
    std::atomic<int> late{0};
  };
  const CEngine engine;
  for (const char* const last : {"zzzz", "\xff"}) {
    Seen seen;
    verbatim_generate_options options = c_options(1);
    options.user = &seen;
    options.notify = [](void* user) {
      auto& self = *static_cast<Seen*>(user);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ++self.ends;
      self.late += self.returned;
    };
    const char* const texts[] = {"abcabc", "hello", last};
    verbatim_result* results[3];
    const verbatim_status status = verbatim_engine_batch(engine, texts, 3, &options, results);
    seen.returned = true;
    EXPECT_EQ(status, last[0] == 'z' ? VERBATIM_OK : VERBATIM_BAD_INPUT);
    const int ends = seen.ends;
    EXPECT_GE(ends, 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(seen.ends, ends);
    EXPECT_EQ(seen.late, 0);
    for (verbatim_result* const result : results) verbatim_result_close(result);
  }
}

}  // namespace
}  // namespace callbacks_test
}  // namespace verbatim::test
