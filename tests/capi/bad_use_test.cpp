#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <thread>

#include "capi/c_model.h"

namespace verbatim::test {
namespace {

TEST(CHandles, AreRefusedWhenClosedOrNullOrOfAnotherKind) {
  verbatim_engine* engine = nullptr;
  ASSERT_EQ(verbatim_engine_open(c_model(), nullptr, &engine), VERBATIM_OK);
  verbatim_engine_stats stats;
  EXPECT_REFUSED(verbatim_engine_describe(nullptr, &stats, sizeof stats), VERBATIM_BAD_ARGUMENT,
                 "the engine is NULL");
  EXPECT_REFUSED(
      verbatim_engine_describe(reinterpret_cast<verbatim_engine*>(c_model()), &stats, sizeof stats),
      VERBATIM_BAD_ARGUMENT, "another kind");
  EXPECT_REFUSED(verbatim_engine_describe(reinterpret_cast<verbatim_engine*>(&stats), &stats, sizeof stats),
                 VERBATIM_BAD_ARGUMENT, "no handle");
  ASSERT_EQ(verbatim_engine_close(engine), VERBATIM_OK);
  EXPECT_REFUSED(verbatim_engine_describe(engine, &stats, sizeof stats), VERBATIM_BAD_ARGUMENT, "is closed");
  EXPECT_REFUSED(verbatim_engine_close(engine), VERBATIM_BAD_ARGUMENT, "is closed");
  EXPECT_EQ(verbatim_engine_close(nullptr), VERBATIM_OK);
}

TEST(CHandles, ThatAreRefusedLeaveStructsFullOfZeros) {
  const auto zeroed = [](const auto& describe, auto filled) {
    std::memset(&filled, 0x5a, sizeof filled);
    EXPECT_EQ(describe(&filled, sizeof filled), VERBATIM_BAD_ARGUMENT);
    const auto* const bytes = reinterpret_cast<const unsigned char*>(&filled);
    EXPECT_EQ(std::count(bytes, bytes + sizeof filled, 0), std::ptrdiff_t{sizeof filled});
  };
  zeroed([](auto* out, size_t size) { return verbatim_engine_describe(nullptr, out, size); },
         verbatim_engine_stats{});
  zeroed([](auto* out, size_t size) { return verbatim_model_describe(nullptr, out, size); },
         verbatim_model_info{});
  zeroed([](auto* out, size_t size) { return verbatim_result_stats(nullptr, out, size); }, verbatim_stats{});
}

TEST(CHandles, AreNeverGivenOutTwice) {
  std::set<void*> seen;
  for (int i = 0; i < 50; ++i) {
    verbatim_chat* chat = nullptr;
    ASSERT_EQ(verbatim_chat_open(c_model(), nullptr, "plain", &chat), VERBATIM_OK);
    EXPECT_TRUE(seen.insert(chat).second);
    verbatim_chat_close(chat);
  }
}

TEST(CHandles, KeepWhatWasMadeOfThem) {
  verbatim_load_options load;
  verbatim_load_options_init(&load, sizeof load);
  load.recipe = "plain";
  verbatim_model* model = nullptr;
  ASSERT_EQ(verbatim_model_load(c_model_file().c_str(), &load, &model), VERBATIM_OK);
  verbatim_engine* engine = nullptr;
  ASSERT_EQ(verbatim_engine_open(model, nullptr, &engine), VERBATIM_OK);
  ASSERT_EQ(verbatim_model_close(model), VERBATIM_OK);
  const verbatim_generate_options options = c_options(5);
  verbatim_stream* stream = nullptr;
  ASSERT_EQ(verbatim_engine_submit_text(engine, "abc", 3, &options, &stream), VERBATIM_OK);
  ASSERT_EQ(verbatim_engine_close(engine), VERBATIM_OK);
  verbatim_result* result = nullptr;
  ASSERT_EQ(verbatim_stream_wait(stream, &result), VERBATIM_OK);
  verbatim_stream_close(stream);
  EXPECT_LE(text_of(result).size(), 20u);
  verbatim_result_close(result);
}

TEST(CErrors, SayWhatTheProgramSays) {
  verbatim_model* model = reinterpret_cast<verbatim_model*>(&model);
  EXPECT_REFUSED(verbatim_model_load("/nowhere/model", nullptr, &model), VERBATIM_BAD_INPUT,
                 "/nowhere/model");
  EXPECT_EQ(model, nullptr);
  verbatim_load_options load;
  verbatim_load_options_init(&load, sizeof load);
  load.recipe = "no-such-recipe";
  EXPECT_REFUSED(verbatim_model_load(c_model_file().c_str(), &load, &model), VERBATIM_USAGE,
                 "no-such-recipe");
  try {
    load_recipe("no-such-recipe");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(verbatim_error_message(), error.what());
  }
  EXPECT_REFUSED(verbatim_model_load(nullptr, nullptr, &model), VERBATIM_BAD_ARGUMENT, "the path is NULL");
  EXPECT_REFUSED(verbatim_model_load("x", nullptr, nullptr), VERBATIM_BAD_ARGUMENT, "NULL");
}

TEST(CErrors, BelongToTheirThread) {
  verbatim_model* model = nullptr;
  EXPECT_REFUSED(verbatim_model_load(nullptr, nullptr, &model), VERBATIM_BAD_ARGUMENT, "the path is NULL");
  std::thread([] {
    EXPECT_STREQ(verbatim_error_message(), "");
    verbatim_chat* chat = nullptr;
    EXPECT_REFUSED(verbatim_chat_open(nullptr, nullptr, nullptr, &chat), VERBATIM_BAD_ARGUMENT,
                   "the model is NULL");
  }).join();
  EXPECT_STREQ(verbatim_error_message(), "the path is NULL");
}

TEST(CErrors, AreThereWhenTheProcessEnds) {
  const auto end = [] {
    verbatim_model* model = nullptr;
    verbatim_model_load("/nowhere/a/model/whose/path/is/long", nullptr, &model);
    std::atexit([] {
      const std::string before = verbatim_error_message();
      verbatim_model_close(reinterpret_cast<verbatim_model*>(uintptr_t{1}));
      std::fprintf(stderr, "before: %s\nthen: %s\n", before.c_str(), verbatim_error_message());
    });
    std::exit(0);
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(0), "before: .*/nowhere/a/model.*\nthen: the model is closed");
}

TEST(COptions, AreRefusedOutOfRange) {
  const CEngine engine;
  const auto refused = [&](auto change) {
    verbatim_generate_options options = c_options(4);
    change(options);
    verbatim_stream* stream = nullptr;
    const verbatim_status status = verbatim_engine_submit_text(engine, "abc", 3, &options, &stream);
    EXPECT_EQ(stream, nullptr);
    verbatim_session* session = nullptr;
    EXPECT_EQ(verbatim_session_open(c_model(), 0, 1, &session), VERBATIM_OK);
    const int32_t tokens[] = {5, 6, 7};
    verbatim_result* result = nullptr;
    EXPECT_EQ(verbatim_session_generate(session, tokens, 3, &options, nullptr, nullptr, &result), status);
    EXPECT_EQ(result, nullptr);
    verbatim_session_close(session);
    return status;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const char* const null_stop = nullptr;
  using Options = verbatim_generate_options;
  EXPECT_EQ(refused([&](Options& options) { options.temperature = nan; }), VERBATIM_USAGE);
  EXPECT_THAT(verbatim_error_message(), ::testing::HasSubstr("temperature"));
  EXPECT_EQ(refused([&](Options& options) { options.top_p = nan; }), VERBATIM_USAGE);
  EXPECT_EQ(refused([&](Options& options) { options.min_p = -1; }), VERBATIM_USAGE);
  EXPECT_EQ(refused([&](Options& options) { options.max_tokens = -1; }), VERBATIM_USAGE);
  EXPECT_EQ(refused([&](Options& options) { options.top_logprobs = 1000; }), VERBATIM_USAGE);
  EXPECT_EQ(refused([&](Options& options) { options.deadline = std::nan(""); }), VERBATIM_USAGE);
  EXPECT_EQ(refused([&](Options& options) { options.recipe = "unheard-of"; }), VERBATIM_USAGE);
  EXPECT_EQ(refused([&](Options& options) { options.json_schema = "{"; }), VERBATIM_BAD_INPUT);
  EXPECT_EQ(refused([&](Options& options) {
              options.stop = &null_stop;
              options.stop_count = 1;
            }),
            VERBATIM_BAD_ARGUMENT);
  EXPECT_EQ(refused([&](Options& options) { options.stop_count = 3; }), VERBATIM_BAD_ARGUMENT);
}

TEST(COptions, OfASizeThatNoVersionKnowsAreRefused) {
  const CEngine engine;
  const char* const text = "abcabc";
  verbatim_result* result = nullptr;
  verbatim_generate_options options = c_options(3);
  for (const size_t size : {size_t{0}, size_t{1}, sizeof options - 1, sizeof options + 8, SIZE_MAX}) {
    options.size = size;
    EXPECT_REFUSED(verbatim_engine_batch(engine, &text, 1, &options, &result), VERBATIM_BAD_ARGUMENT,
                   "verbatim_generate_options_init()");
  }
}

TEST(COptions, OfANewerHeaderAreFilledInAndThenRefused) {
  struct Newer {
    verbatim_generate_options known;
    double added;
  } newer;
  newer.added = 1;
  verbatim_generate_options_init(&newer.known, sizeof newer);
  EXPECT_EQ(newer.known.size, sizeof newer);
  EXPECT_EQ(newer.added, 0);
  verbatim_stream* stream = nullptr;
  const CEngine engine;
  EXPECT_REFUSED(verbatim_engine_submit_text(engine, "abc", 3, &newer.known, &stream), VERBATIM_BAD_ARGUMENT,
                 "size");
}

TEST(CSession, IsForOneThreadAtATime) {
  verbatim_session* session = nullptr;
  ASSERT_EQ(verbatim_session_open(c_model(), 0, 1, &session), VERBATIM_OK);
  struct Seen {
    verbatim_session* session;
    verbatim_status here = VERBATIM_OK;
    verbatim_status elsewhere = VERBATIM_OK;
    bool called = false;
  } seen{session};
  const verbatim_generate_options options = c_options(4);
  const int32_t tokens[] = {5, 6, 7};
  verbatim_result* result = nullptr;
  const auto on_piece = [](const verbatim_piece*, void* user) {
    auto& self = *static_cast<Seen*>(user);
    if (std::exchange(self.called, true)) return 0;
    self.here = verbatim_session_truncate(self.session, 0);
    std::thread([&] { self.elsewhere = verbatim_session_truncate(self.session, 0); }).join();
    verbatim_session_close(self.session);  // the call goes on with what it has
    return 0;
  };
  ASSERT_EQ(verbatim_session_generate(session, tokens, 3, &options, on_piece, &seen, &result), VERBATIM_OK);
  EXPECT_EQ(seen.here, VERBATIM_USAGE);
  EXPECT_EQ(seen.elsewhere, VERBATIM_USAGE);
  EXPECT_REFUSED(verbatim_session_truncate(session, 0), VERBATIM_BAD_ARGUMENT, "is closed");
  verbatim_result_close(result);
}

}  // namespace
}  // namespace verbatim::test
