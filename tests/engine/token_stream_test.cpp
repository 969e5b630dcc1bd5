#include <condition_variable>
#include <mutex>
#include <thread>

#include "support/byte_model.h"

namespace verbatim {
namespace token_stream_test {
namespace {

const Model& model() {
  return test::byte_pair().target;
}

Request request(int64_t tokens) {
  Request request{.prompt = model().encode("abcabc"), .recipe = load_recipe("plain")};
  request.options.max_tokens = tokens;
  request.options.ignore_eos = true;
  return request;
}

/// Counts how often it rang.
struct Bell {
  std::mutex mutex;
  std::condition_variable changed;
  int rings = 0;

  std::function<void()> ringer() {
    return [this] {
      const std::lock_guard lock(mutex);
      ++rings;
      changed.notify_all();
    };
  }
  void wait_for(int count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return rings >= count; });
  }
};

TEST(TokenStream, IsTakenWithoutWaitingWhenItSaysThatItHasSomething) {
  Engine engine(model(), {.max_batch = 2, .capacity = 64, .threads = 1});
  Bell bell;
  Request asked = request(20);
  asked.notify = bell.ringer();
  TokenStream stream = engine.submit(asked);
  std::string text;
  std::vector<int32_t> tokens;
  for (int seen = 1;; ++seen) {
    bell.wait_for(seen);
    const bool done = stream.done();
    while (const auto piece = stream.poll()) {
      text += piece->text;
      tokens.insert(tokens.end(), piece->tokens.begin(), piece->tokens.end());
    }
    if (done) break;
  }
  const GenerateResult whole = stream.wait();
  EXPECT_EQ(text, whole.text);
  EXPECT_EQ(tokens, whole.tokens);
  EXPECT_EQ(tokens, engine.generate(request(20)).tokens);
  EXPECT_FALSE(stream.poll());
}

TEST(TokenStream, RingsAtTheEndOfEveryKindOfAnswer) {
  Bell bell;
  Engine engine(model(), {.max_batch = 1, .capacity = 64, .threads = 1});
  Request nothing = request(0);
  nothing.notify = bell.ringer();
  engine.submit(nothing);
  EXPECT_EQ(bell.rings, 1);

  Request failing = request(4);
  failing.options.filter = [](std::span<const int32_t>, std::span<uint8_t> allowed) {
    std::fill(allowed.begin(), allowed.end(), 0);
  };
  failing.notify = bell.ringer();
  TokenStream failed = engine.submit(failing);
  bell.wait_for(2);
  EXPECT_TRUE(failed.done());
  EXPECT_THROW(failed.wait(), Error);

  Request late = request(4);
  late.deadline = std::chrono::steady_clock::now();
  late.notify = bell.ringer();
  TokenStream ended = engine.submit(late);
  bell.wait_for(3);
  EXPECT_TRUE(ended.done());
  EXPECT_EQ(ended.wait().stats.finish, FinishReason::kDeadline);
}

TEST(ShownTokens, AreSpelledOutInTheTextWholeAndInPieces) {
  constexpr int32_t kBegin = 1;
  ASSERT_EQ(model().piece(kBegin), "<s>");
  ASSERT_EQ(model().token_text(kBegin), "");
  for (const char* const name : {"plain", "ml-specqd"}) {
    Request asked = request(6);
    asked.recipe = load_recipe(name);
    asked.options.filter = [](std::span<const int32_t> said, std::span<uint8_t> allowed) {
      std::fill(allowed.begin(), allowed.end(), 0);
      allowed[static_cast<size_t>(said.size() % 2 == 0 ? test::kFirstByte + 'x' : kBegin)] = 1;
    };
    Engine engine(model(), {.max_batch = 1, .capacity = 64, .threads = 1});
    EXPECT_EQ(engine.generate(asked).text, "xxx");
    asked.options.shown_tokens = {kBegin};
    TokenStream stream = engine.submit(asked);
    std::string text;
    while (const auto piece = stream.next()) text += piece->text;
    EXPECT_EQ(text, "x<s>x<s>x<s>");
    EXPECT_EQ(stream.wait().text, text);
    asked.options.stop = {"<s>x"};
    EXPECT_EQ(engine.generate(asked).text, "x");
    asked.options.shown_tokens = {model().vocab_size()};
    EXPECT_THROW(engine.submit(asked), Error);
  }
}

}  // namespace
}  // namespace token_stream_test
}  // namespace verbatim
