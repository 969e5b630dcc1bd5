#include <gmock/gmock.h>

#include <condition_variable>
#include <mutex>

#include "capi/c_model.h"

namespace verbatim::test {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr const char* kPrompt = "abcabcabc";

int append(const verbatim_piece* piece, void* user) {
  static_cast<std::string*>(user)->append(piece->text, piece->length);
  return 0;
}

std::vector<int32_t> encoded(const std::string& text) {
  std::vector<int32_t> tokens(100);
  size_t count = 0;
  EXPECT_EQ(
      verbatim_model_encode(c_model(), text.data(), text.size(), 1, tokens.data(), tokens.size(), &count),
      VERBATIM_OK);
  tokens.resize(count);
  return tokens;
}

TEST(CModel, GivesTheTokensOfTheModel) {
  const std::vector<int32_t> tokens = encoded("hello");
  EXPECT_THAT(tokens, ElementsAreArray(same_model().encode("hello")));
  char text[16];
  size_t length = 0;
  ASSERT_EQ(verbatim_model_decode(c_model(), tokens.data(), tokens.size(), text, sizeof text, &length),
            VERBATIM_OK);
  EXPECT_EQ(std::string(text), same_model().decode(tokens));
  EXPECT_EQ(length, std::string(text).size());
}

TEST(CModel, WritesAsMuchAsFitsAndSaysHowMuchThereIs) {
  int32_t tokens[2] = {-7, -7};
  size_t count = 0;
  ASSERT_EQ(verbatim_model_encode(c_model(), "hello", VERBATIM_TO_NUL, 1, tokens, 1, &count), VERBATIM_OK);
  EXPECT_EQ(count, same_model().encode("hello").size());
  EXPECT_EQ(tokens[0], same_model().encode("hello")[0]);
  EXPECT_EQ(tokens[1], -7);
  ASSERT_EQ(verbatim_model_encode(c_model(), "hello", VERBATIM_TO_NUL, 1, nullptr, 0, &count), VERBATIM_OK);
  EXPECT_EQ(count, same_model().encode("hello").size());
}

TEST(CModel, DescribesItself) {
  verbatim_model_info info;
  ASSERT_EQ(verbatim_model_describe(c_model(), &info, sizeof info), VERBATIM_OK);
  EXPECT_EQ(info.vocab_size, 260);
  EXPECT_EQ(info.context, same_model().context());
  EXPECT_EQ(info.has_vocabulary, 1);
  EXPECT_EQ(info.bos_token, same_model().bos_token().value_or(-1));
}

TEST(CModel, ScoresTextsAsTheLibraryDoes) {
  const std::vector<int32_t> tokens = encoded("hello");
  verbatim_score_options options;
  verbatim_score_options_init(&options, sizeof options);
  options.top_logprobs = 3;
  options.threads = 2;
  verbatim_result* result = nullptr;
  ASSERT_EQ(verbatim_model_score(c_model(), tokens.data(), tokens.size(), &options, &result), VERBATIM_OK);
  const verbatim_scored_token* scored = nullptr;
  size_t count = 0;
  ASSERT_EQ(verbatim_result_logprobs(result, &scored, &count), VERBATIM_OK);
  const std::vector<ScoredToken> expected = score(same_model(), tokens, {.top_logprobs = 3, .threads = 2});
  ASSERT_EQ(count, expected.size());
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(scored[i].token, expected[i].token);
    EXPECT_EQ(scored[i].logprob, expected[i].logprob);
    ASSERT_EQ(scored[i].top_count, 3u);
    for (size_t k = 0; k < 3; ++k) EXPECT_EQ(scored[i].top[k].logprob, expected[i].top[k].logprob);
  }
  EXPECT_EQ(verbatim_result_close(result), VERBATIM_OK);
}

TEST(CStream, GivesTheBytesOfTheLibraryPieceByPiece) {
  const CEngine engine;
  for (const char* const recipe : {"plain", "ngram"}) {
    verbatim_generate_options options = c_options(40, recipe);
    options.top_logprobs = 1;
    verbatim_stream* stream = nullptr;
    ASSERT_EQ(verbatim_engine_submit_text(engine, kPrompt, VERBATIM_TO_NUL, &options, &stream), VERBATIM_OK);
    std::string text;
    std::vector<int32_t> tokens;
    verbatim_piece piece;
    verbatim_stream_state state = VERBATIM_STREAM_EMPTY;
    while (verbatim_stream_next(stream, &piece, &state) == VERBATIM_OK && state == VERBATIM_STREAM_PIECE) {
      text.append(piece.text, piece.length);
      tokens.insert(tokens.end(), piece.tokens, piece.tokens + piece.token_count);
      for (size_t i = 0; i < piece.token_count; ++i) EXPECT_LE(piece.logprobs[i].logprob, 0);
    }
    EXPECT_EQ(state, VERBATIM_STREAM_END);
    verbatim_result* result = nullptr;
    ASSERT_EQ(verbatim_stream_wait(stream, &result), VERBATIM_OK);
    const GenerateResult expected = same_answer(kPrompt, 40);
    EXPECT_EQ(text, expected.text);
    EXPECT_EQ(tokens, expected.tokens);
    EXPECT_EQ(text_of(result), expected.text);
    EXPECT_EQ(tokens_of(result), expected.tokens);
    verbatim_stats stats;
    ASSERT_EQ(verbatim_result_stats(result, &stats, sizeof stats), VERBATIM_OK);
    EXPECT_EQ(stats.generated_tokens, 40);
    EXPECT_STREQ(verbatim_finish_name(stats.finish), "length");
    verbatim_result_close(result);
    verbatim_stream_close(stream);
  }
}

TEST(CStream, CallsBackWithEachPiece) {
  const CEngine engine;
  const verbatim_generate_options options = c_options(40);
  verbatim_stream* stream = nullptr;
  const std::vector<int32_t> prompt = encoded(kPrompt);
  ASSERT_EQ(verbatim_engine_submit(engine, prompt.data(), prompt.size(), &options, &stream), VERBATIM_OK);
  std::string text;
  verbatim_result* result = nullptr;
  ASSERT_EQ(verbatim_stream_run(stream, append, &text, &result), VERBATIM_OK);
  EXPECT_EQ(text, same_answer(kPrompt, 40).text);
  EXPECT_EQ(text_of(result), text);
  verbatim_result* again = nullptr;
  EXPECT_REFUSED(verbatim_stream_wait(stream, &again), VERBATIM_USAGE, "already");
  verbatim_result_close(result);
  verbatim_stream_close(stream);
}

TEST(CStream, IsPolledAfterItsNotifications) {
  struct Told {
    std::mutex mutex;
    std::condition_variable changed;
    int times = 0;
  } told;
  const CEngine engine;
  verbatim_generate_options options = c_options(20);
  options.notify = [](void* user) {
    auto& self = *static_cast<Told*>(user);
    const std::lock_guard lock(self.mutex);
    ++self.times;
    self.changed.notify_all();
  };
  options.user = &told;
  verbatim_stream* stream = nullptr;
  ASSERT_EQ(verbatim_engine_submit_text(engine, kPrompt, VERBATIM_TO_NUL, &options, &stream), VERBATIM_OK);
  std::string text;
  verbatim_stream_state state = VERBATIM_STREAM_EMPTY;
  for (int seen = 0; state != VERBATIM_STREAM_END;) {
    {
      std::unique_lock lock(told.mutex);
      if (state == VERBATIM_STREAM_EMPTY) told.changed.wait(lock, [&] { return told.times > seen; });
      seen = told.times;
    }
    verbatim_piece piece;
    ASSERT_EQ(verbatim_stream_poll(stream, &piece, &state), VERBATIM_OK);
    if (state == VERBATIM_STREAM_PIECE) text.append(piece.text, piece.length);
  }
  EXPECT_EQ(text, same_answer(kPrompt, 20).text);
  verbatim_stream_close(stream);
}

TEST(CBatch, GivesEachTextItsOwnAnswer) {
  const CEngine engine;
  const char* const texts[] = {"abcabc", "hello hello", "zzzz"};
  const verbatim_generate_options options = c_options(24);
  verbatim_result* results[3];
  ASSERT_EQ(verbatim_engine_batch(engine, texts, 3, &options, results), VERBATIM_OK);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(text_of(results[i]), same_answer(texts[i], 24).text);
    verbatim_result_close(results[i]);
  }
}

TEST(CBatch, FailsAsAWhole) {
  const CEngine engine;
  const char* const texts[] = {"abcabc", "\xff", "zzzz"};
  const verbatim_generate_options options = c_options(24);
  verbatim_result* results[3] = {reinterpret_cast<verbatim_result*>(&results), nullptr, nullptr};
  EXPECT_REFUSED(verbatim_engine_batch(engine, texts, 3, &options, results), VERBATIM_BAD_INPUT, "UTF-8");
  for (const verbatim_result* result : results) EXPECT_EQ(result, nullptr);
}

TEST(CStructure, HoldsRepliesToASchema) {
  const CEngine engine;
  verbatim_generate_options options = c_options(60);
  options.ignore_eos = 0;
  options.json_schema = R"({"enum": ["red", "green"]})";
  const char* const text = "colour: ";
  verbatim_result* result = nullptr;
  ASSERT_EQ(verbatim_engine_batch(engine, &text, 1, &options, &result), VERBATIM_OK)
      << verbatim_error_message();
  EXPECT_THAT(text_of(result), ::testing::AnyOf("\"red\"", "\"green\""));
  verbatim_result_close(result);
  options.regex = "x";
  EXPECT_REFUSED(verbatim_engine_batch(engine, &text, 1, &options, &result), VERBATIM_USAGE, "not to both");
}

TEST(CFilter, SaysWhichTokensMayCome) {
  const CEngine engine;
  verbatim_generate_options options = c_options(10);
  options.filter = [](const int32_t*, size_t, uint8_t* allowed, size_t vocab_size, void* user) {
    for (size_t token = 0; token < vocab_size; ++token) allowed[token] = token == *static_cast<size_t*>(user);
  };
  size_t only = static_cast<size_t>(same_model().encode("q", false).back());
  options.user = &only;
  const char* const text = "abc";
  verbatim_result* result = nullptr;
  ASSERT_EQ(verbatim_engine_batch(engine, &text, 1, &options, &result), VERBATIM_OK);
  EXPECT_EQ(text_of(result), "qqqqqqqqqq");
  verbatim_result_close(result);
}

/// A conversation that has been asked something.
class CConversation : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(verbatim_chat_open(c_model(), "Be brief.", "plain", &chat_), VERBATIM_OK)
        << verbatim_error_message();
    ASSERT_EQ(verbatim_chat_add_user(chat_, "Hi", VERBATIM_TO_NUL), VERBATIM_OK);
  }
  void TearDown() override { EXPECT_EQ(verbatim_chat_close(chat_), VERBATIM_OK); }

  verbatim_chat* chat_ = nullptr;
};

TEST_F(CConversation, IsWrittenAsTheLibraryWritesIt) {
  const CEngine engine;
  Chat same(same_model(), chat_format("plain"), "Be brief.");
  same.add_user("Hi");
  const int32_t* tokens = nullptr;
  size_t count = 0;
  ASSERT_EQ(verbatim_chat_tokens(chat_, &tokens, &count), VERBATIM_OK);
  EXPECT_EQ(std::vector<int32_t>(tokens, tokens + count), same.tokens());

  const verbatim_generate_options options = c_options(16);
  verbatim_stream* stream = nullptr;
  ASSERT_EQ(verbatim_engine_submit_chat(engine, chat_, &options, &stream), VERBATIM_OK);
  verbatim_result* result = nullptr;
  ASSERT_EQ(verbatim_stream_wait(stream, &result), VERBATIM_OK);
  ASSERT_EQ(verbatim_chat_add_reply(chat_, result), VERBATIM_OK);
  verbatim_role role = VERBATIM_ROLE_USER;
  const char* text = nullptr;
  size_t length = 0;
  ASSERT_EQ(verbatim_chat_message(chat_, 2, &role, &text, &length), VERBATIM_OK);
  EXPECT_EQ(role, VERBATIM_ROLE_ASSISTANT);
  EXPECT_EQ(std::string(text, length), text_of(result));
  ASSERT_EQ(verbatim_chat_message(chat_, 3, &role, &text, &length), VERBATIM_OK);
  EXPECT_EQ(text, nullptr);
  verbatim_result_close(result);
  verbatim_stream_close(stream);
}

TEST_F(CConversation, GoesOnAfterItWasSavedAndRestored) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "conversation";
  const verbatim_generate_options options = c_options(12);
  verbatim_session* session = nullptr;
  ASSERT_EQ(verbatim_session_open(c_model(), 0, 2, &session), VERBATIM_OK);
  verbatim_result* first = nullptr;
  std::string streamed;
  ASSERT_EQ(verbatim_session_reply(session, chat_, &options, append, &streamed, &first), VERBATIM_OK);
  EXPECT_EQ(streamed, text_of(first));
  ASSERT_EQ(verbatim_chat_add_reply(chat_, first), VERBATIM_OK);
  ASSERT_EQ(verbatim_chat_add_user(chat_, "And?", VERBATIM_TO_NUL), VERBATIM_OK);
  ASSERT_EQ(verbatim_session_save(session, file.c_str()), VERBATIM_OK) << verbatim_error_message();
  EXPECT_REFUSED(verbatim_session_save(session, file.c_str()), VERBATIM_BAD_INPUT, file);

  verbatim_session* later = nullptr;
  ASSERT_EQ(verbatim_session_open(c_model(), 0, 2, &later), VERBATIM_OK);
  ASSERT_EQ(verbatim_session_restore(later, file.c_str()), VERBATIM_OK);
  const int32_t* tokens = nullptr;
  size_t count = 0;
  int64_t evaluated = 0;
  ASSERT_EQ(verbatim_session_tokens(later, &tokens, &count, &evaluated), VERBATIM_OK);
  EXPECT_GT(count, 0u);
  EXPECT_GT(evaluated, 0);
  verbatim_result* answers[2] = {nullptr, nullptr};
  ASSERT_EQ(verbatim_session_reply(session, chat_, &options, nullptr, nullptr, &answers[0]), VERBATIM_OK);
  ASSERT_EQ(verbatim_session_reply(later, chat_, &options, nullptr, nullptr, &answers[1]), VERBATIM_OK);
  EXPECT_EQ(tokens_of(answers[0]), tokens_of(answers[1]));
  verbatim_stats stats;
  ASSERT_EQ(verbatim_result_stats(answers[1], &stats, sizeof stats), VERBATIM_OK);
  EXPECT_LT(stats.prompt_tokens, evaluated);

  for (verbatim_result* result : {first, answers[0], answers[1]}) verbatim_result_close(result);
  verbatim_session_close(session);
  verbatim_session_close(later);
}

TEST(CProgress, EndsLoading) {
  verbatim_load_options options;
  verbatim_load_options_init(&options, sizeof options);
  options.recipe = "ngram";
  options.progress = [](double, void* user) { return ++*static_cast<int*>(user); };
  int asked = 0;
  options.user = &asked;
  verbatim_model* model = nullptr;
  EXPECT_REFUSED(verbatim_model_load(c_model_file().c_str(), &options, &model), VERBATIM_CANCELLED,
                 "progress callback");
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(model, nullptr);
}

TEST(CLibrary, SaysWhatItIs) {
  EXPECT_STREQ(verbatim_version(), version());
  EXPECT_EQ(verbatim_c_version(), VERBATIM_C_VERSION);
  const char* kernels = nullptr;
  const char* processor = nullptr;
  int32_t threads = 0;
  ASSERT_EQ(verbatim_machine(&kernels, &processor, &threads), VERBATIM_OK);
  EXPECT_EQ(kernels, describe_machine().kernels);
  EXPECT_GT(threads, 0);
  const char* const* names = nullptr;
  size_t count = 0;
  ASSERT_EQ(verbatim_recipe_names(&names, &count), VERBATIM_OK);
  EXPECT_THAT(std::vector<std::string>(names, names + count), ElementsAreArray(recipe_names()));
}

}  // namespace
}  // namespace verbatim::test
