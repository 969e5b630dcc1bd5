#include <gmock/gmock.h>

#include <limits>
#include <random>
#include <thread>

#include "capi/c_model.h"

// Sequences of calls that make little sense, with whatever handles and values come to hand, on whatever
// thread. Each call has to end with a status, a message if that is not VERBATIM_OK, and nothing worse. What
// each thread calls is the same every time.

namespace verbatim::test {
namespace {

class RandomCaller {
 public:
  explicit RandomCaller(uint32_t seed) : random_(seed) {
    handles_.push_back(c_model());
    verbatim_engine_options options;
    verbatim_engine_options_init(&options, sizeof options);
    options.threads = 1;
    options.max_batch = 2;
    verbatim_engine* engine = nullptr;
    keep(verbatim_engine_open(c_model(), &options, &engine), engine, engines_);
    verbatim_chat* chat = nullptr;
    keep(verbatim_chat_open(c_model(), nullptr, "plain", &chat), chat, chats_);
    verbatim_session* session = nullptr;
    keep(verbatim_session_open(c_model(), 0, 1, &session), session, sessions_);
  }

  /// A caller that knows the handles of another one.
  RandomCaller(uint32_t seed, const RandomCaller& other)
      : random_(seed),
        handles_(other.handles_),
        engines_(other.engines_),
        streams_(other.streams_),
        results_(other.results_),
        chats_(other.chats_),
        sessions_(other.sessions_) {}
  RandomCaller(const RandomCaller&) = delete;
  RandomCaller& operator=(const RandomCaller&) = delete;

  ~RandomCaller() {
    for (void* const handle : handles_) {
      if (handle == c_model()) continue;
      verbatim_stream_close(static_cast<verbatim_stream*>(handle));
      verbatim_engine_close(static_cast<verbatim_engine*>(handle));
      verbatim_result_close(static_cast<verbatim_result*>(handle));
      verbatim_chat_close(static_cast<verbatim_chat*>(handle));
      verbatim_session_close(static_cast<verbatim_session*>(handle));
      verbatim_model_close(static_cast<verbatim_model*>(handle));
    }
  }

  /// Makes one call, now and then on another thread than the others; true if it succeeded.
  bool call() {
    if (below(10) != 0) return call_here();
    bool succeeded = false;
    std::thread([&] { succeeded = call_here(); }).join();
    return succeeded;
  }

 private:
  bool call_here() {
    const verbatim_status status = any_call();
    EXPECT_GE(status, VERBATIM_OK);
    EXPECT_LE(status, VERBATIM_CANCELLED);
    if (status == VERBATIM_OK) return true;
    EXPECT_STRNE(verbatim_error_message(), "");
    EXPECT_STRNE(verbatim_error_message(), "something failed without saying what");
    return false;
  }

  int below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random_); }
  bool rarely() { return below(12) == 0; }

  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<int>(values.size()))];
  }

  /// Any handle that was ever given out, whatever its kind, or none at all. The latest ones come most often.
  template <typename Handle>
  Handle* handle() {
    if (rarely())
      return one_of<Handle*>(
          {nullptr, reinterpret_cast<Handle*>(this), reinterpret_cast<Handle*>(~uintptr_t{0})});
    const auto of_kind =
        std::find_if(handles_.rbegin(), handles_.rend(), [&](void*) { return below(2) == 0; });
    return static_cast<Handle*>(of_kind == handles_.rend() ? handles_.front() : *of_kind);
  }

  /// A handle of the right kind, if there is one.
  template <typename Handle>
  Handle* fitting(std::vector<void*>& kind) {
    return kind.empty() || rarely()
               ? handle<Handle>()
               : static_cast<Handle*>(kind[static_cast<size_t>(below(static_cast<int>(kind.size())))]);
  }
  verbatim_model* model() { return below(8) == 0 ? handle<verbatim_model>() : c_model(); }
  verbatim_engine* engine() { return fitting<verbatim_engine>(engines_); }
  verbatim_stream* stream() { return fitting<verbatim_stream>(streams_); }
  verbatim_result* result() { return fitting<verbatim_result>(results_); }
  verbatim_chat* chat() { return fitting<verbatim_chat>(chats_); }
  verbatim_session* session() { return fitting<verbatim_session>(sessions_); }

  template <typename Handle>
  verbatim_status keep(verbatim_status status, Handle* const& handle, std::vector<void*>& kind) {
    EXPECT_EQ(status == VERBATIM_OK, handle != nullptr);
    if (handle != nullptr) {
      handles_.push_back(handle);
      kind.push_back(handle);
    }
    return status;
  }

  const char* text() { return one_of<const char*>({"abcabc", "hello", "", "\xff\xfe", "x", nullptr}); }
  size_t length() { return one_of<size_t>({VERBATIM_TO_NUL, VERBATIM_TO_NUL, 0, 1}); }
  float number() {
    return one_of<float>({0.0f, 0.5f, 1.0f, 1.0f, 0.9f, -1.0f, std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity()});
  }

  const verbatim_generate_options* options() {
    static const char* const stops[] = {"a", "", nullptr};
    static const verbatim_logit_bias biases[] = {
        {5, 2.0f}, {-1, 1.0f}, {1 << 30, std::numeric_limits<float>::quiet_NaN()}};
    static const int32_t stop_tokens[] = {2, -5, 1 << 30};
    options_ = c_options(below(5), one_of<const char*>({"plain", "ngram", "plain", "ngram", "auto", "none"}));
    options_.seed = static_cast<uint64_t>(below(100));
    if (rarely()) options_.temperature = number();
    if (rarely()) options_.top_p = number();
    if (rarely()) options_.min_p = number();
    if (rarely()) options_.top_k = below(10) - 2;
    if (rarely()) options_.repetition_penalty = number();
    if (rarely()) options_.presence_penalty = number();
    if (rarely()) options_.max_tokens = one_of<int64_t>({-1, 1000, INT64_MAX, INT64_MIN});
    if (rarely()) options_.deadline = number();
    if (rarely()) options_.prefill_chunk = below(4) - 1;
    if (rarely()) options_.priority = one_of({INT32_MIN, INT32_MAX});
    if (rarely()) options_.json_schema = one_of<const char*>({R"({"type": "boolean"})", "{", "false", ""});
    if (rarely()) options_.regex = one_of<const char*>({"a+", "(", ""});
    if (rarely()) options_.size = static_cast<size_t>(below(400));
    if (rarely()) options_.top_logprobs = below(100) - 3;
    if (rarely()) options_.cancelled = [](void*) { return 1; };
    if (rarely()) options_.notify = [](void*) {};
    if (rarely())
      options_.filter = [](const int32_t*, size_t, uint8_t* allowed, size_t size, void*) {
        std::fill_n(allowed, size, uint8_t{0});
      };
    if (rarely()) options_.stop = stops, options_.stop_count = static_cast<size_t>(below(4));
    if (rarely()) options_.logit_bias = biases, options_.logit_bias_count = static_cast<size_t>(below(4));
    if (rarely())
      options_.stop_tokens = stop_tokens, options_.stop_token_count = static_cast<size_t>(below(4));
    return below(20) == 0 ? nullptr : &options_;
  }

  static int on_piece(const verbatim_piece* piece, void* user) {
    auto& self = *static_cast<RandomCaller*>(user);
    EXPECT_EQ(piece->text[piece->length], '\0');
    // One level deep: a callback makes calls of its own.
    if (!std::exchange(self.inside_, true)) {
      self.call();
      self.inside_ = false;
    }
    return self.below(4) == 0;
  }

  verbatim_status any_call() {
    static const int32_t tokens[] = {5, 6, 7, 8, 5, 6, 7, 8, -1, 1 << 30};
    const auto count = static_cast<size_t>(rarely() ? below(11) : 1 + below(8));
    const int32_t* const given = rarely() ? nullptr : tokens;
    verbatim_engine* new_engine = nullptr;
    verbatim_stream* new_stream = nullptr;
    verbatim_result* new_result = nullptr;
    verbatim_chat* new_chat = nullptr;
    verbatim_session* new_session = nullptr;
    verbatim_piece piece;
    verbatim_stream_state state;
    const char* said = nullptr;
    const int32_t* list = nullptr;
    size_t size = 0;
    switch (below(34)) {
      case 0:
      case 1: {
        verbatim_engine_options options;
        verbatim_engine_options_init(&options, sizeof options);
        options.threads = rarely() ? -1 : 1;
        options.max_batch = rarely() ? below(3000) - 5 : 1 + below(3);
        if (rarely()) options.capacity = one_of<int64_t>({-1, 10, INT64_MAX});
        if (rarely()) options.cache_bytes = one_of<int64_t>({-1, 10, INT64_MAX});
        if (rarely()) options.cache_dir = one_of<const char*>({"/dev/null/x", ""});
        options.prompt_cache = below(2);
        return keep(verbatim_engine_open(model(), &options, &new_engine), new_engine, engines_);
      }
      case 2:
      case 3:
        return keep(verbatim_engine_submit(engine(), given, count, options(), &new_stream), new_stream,
                    streams_);
      case 4:
        return keep(verbatim_engine_submit_text(engine(), text(), length(), options(), &new_stream),
                    new_stream, streams_);
      case 5:
        return keep(verbatim_engine_submit_chat(engine(), chat(), options(), &new_stream), new_stream,
                    streams_);
      case 6:
      case 7:
        return verbatim_stream_next(stream(), rarely() ? nullptr : &piece, &state);
      case 8:
        return verbatim_stream_poll(stream(), &piece, rarely() ? nullptr : &state);
      case 9:
        return keep(verbatim_stream_run(stream(), rarely() ? nullptr : on_piece, this, &new_result),
                    new_result, results_);
      case 10:
        return keep(verbatim_stream_wait(stream(), &new_result), new_result, results_);
      case 11:
        return verbatim_stream_cancel(stream());
      case 12:
        return verbatim_stream_close(stream());
      case 13:
        return verbatim_engine_close(rarely() ? engine() : handle<verbatim_engine>());
      case 14:
        return verbatim_result_text(result(), &said, nullptr);
      case 15:
        return verbatim_result_tokens(result(), &list, &size);
      case 16: {
        verbatim_stats stats;
        return verbatim_result_stats(result(), &stats,
                                     rarely() ? 0 : static_cast<size_t>(1 + below(sizeof stats)));
      }
      case 17:
        return verbatim_result_close(result());
      case 18:
        return keep(verbatim_chat_open(model(), rarely() ? "\xff" : "Be brief.",
                                       one_of<const char*>({nullptr, "plain", "chatml", "none"}), &new_chat),
                    new_chat, chats_);
      case 19:
      case 20:
        return verbatim_chat_add_user(chat(), text(), length());
      case 21:
        return verbatim_chat_add_reply(chat(), result());
      case 22:
        return verbatim_chat_add_reply_text(chat(), text(), length());
      case 23:
        return one_of({verbatim_chat_clear, verbatim_chat_close})(chat());
      case 24:
        return keep(verbatim_session_open(model(), one_of<int64_t>({0, 20, 64, -1, INT64_MAX}),
                                          rarely() ? -3 : 1, &new_session),
                    new_session, sessions_);
      case 25:
      case 26:
        return keep(
            verbatim_session_generate(session(), given, count, options(), on_piece, this, &new_result),
            new_result, results_);
      case 27:
        return keep(verbatim_session_reply(session(), chat(), options(), nullptr, nullptr, &new_result),
                    new_result, results_);
      case 28:
        return verbatim_session_truncate(session(), one_of<int64_t>({0, 3, -1, INT64_MAX}));
      case 29:
        return verbatim_session_save(session(), one_of<const char*>({"/dev/null/x", "", nullptr}));
      case 30:
        return verbatim_session_restore(session(),
                                        one_of<const char*>({c_model_file().c_str(), "/", nullptr}));
      case 31: {
        const char* const texts[] = {"abc", text()};
        verbatim_result* results[2];
        const verbatim_status status = verbatim_engine_batch(engine(), texts, 2, options(), results);
        for (verbatim_result* each : results) {
          if (status == VERBATIM_OK) keep(status, each, results_);
        }
        return status;
      }
      case 32:
        return keep(verbatim_model_score(model(), given, count, nullptr, &new_result), new_result, results_);
      default: {
        int32_t out[4];
        return verbatim_model_encode(model(), text(), length(), below(2), rarely() ? nullptr : out, 4, &size);
      }
    }
  }

  std::mt19937 random_;
  std::vector<void*> handles_;
  std::vector<void*> engines_, streams_, results_, chats_, sessions_;
  verbatim_generate_options options_;
  bool inside_ = false;
};

TEST(CRandomCalls, NeverCrash) {
  int made = 0;
  int succeeded = 0;
  for (uint32_t sequence = 0; sequence < 1000; ++sequence) {
    RandomCaller caller(sequence);
    for (int i = 0; i < 40; ++i, ++made) succeeded += caller.call();
    if (HasFailure()) FAIL() << "sequence " << sequence;
  }
  // If nearly all were refused at the door, little would have been tried.
  EXPECT_GT(succeeded, made / 4);
}

TEST(CRandomCalls, OfSeveralThreadsWithTheSameHandlesNeverCrash) {
  for (uint32_t sequence = 0; sequence < 100; ++sequence) {
    RandomCaller first(2 * sequence);
    for (int i = 0; i < 10; ++i) first.call();
    RandomCaller second(2 * sequence + 1, first);
    std::thread other([&] {
      for (int i = 0; i < 30; ++i) second.call();
    });
    for (int i = 0; i < 30; ++i) first.call();
    other.join();
    if (HasFailure()) FAIL() << "sequence " << sequence;
  }
}

}  // namespace
}  // namespace verbatim::test
