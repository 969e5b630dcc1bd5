#include "serve/answer.h"

#include <fmt/format.h>

#include <atomic>
#include <functional>
#include <utility>

namespace verbatim::serve {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

class Answer;

/// What an engine rings when a stream has something. It keeps no answer alive, so that the last owner of an
/// answer, and with it of an engine, is never a thread of that engine.
class Bell {
 public:
  explicit Bell(Workers& workers) : workers_(workers) {}

  void ring();

  Workers& workers_;
  std::weak_ptr<Answer> answer;
  /// How often it rang since an answer looked last. It begins as if it had rung, so that nobody looks before
  /// open() is called.
  std::atomic<int64_t> rings{1};

  void post(std::shared_ptr<Bell> self);
  std::weak_ptr<Bell> self;
};

/// The choices of one answer.
class Answer {
 public:
  struct Choice {
    TokenStream stream;
    int64_t prompt_tokens;
    bool plain;
    bool ended = false;
    bool begun = false;
    Clock::time_point last;
  };

  Answer(std::shared_ptr<Call> call_, std::shared_ptr<LoadedModel> model_,
         std::unique_ptr<ReplyWriter> writer_)
      : call(std::move(call_)), model(std::move(model_)), writer(std::move(writer_)), counts(model->counts) {}

  /// Takes in whatever the streams have. True when all have ended.
  bool look();
  void cancel() {
    for (Choice& choice : choices) choice.stream.cancel();
  }
  /// Says an error, once, and ends what is running.
  void fail(const HttpError& error);

  std::shared_ptr<Call> call;
  std::shared_ptr<LoadedModel> model;
  std::unique_ptr<ReplyWriter> writer;
  std::shared_ptr<ModelCounts> counts;
  std::vector<Choice> choices;
  bool failed = false;
  std::shared_ptr<Answer> self;  // until all choices have ended

 private:
  void look_at(size_t index);
  /// Does some work; what it throws is the answer's error.
  void attempt(const std::function<void()>& work);
  void take(size_t index, TokenStream::Piece&& piece);
  void end(size_t index);
};

void Bell::ring() {
  if (rings.fetch_add(1) == 0) post(self.lock());
}

void Bell::post(std::shared_ptr<Bell> own) {
  workers_.post([own = std::move(own)] {
    const std::shared_ptr<Answer> answer = own->answer.lock();
    if (answer == nullptr) return;
    const int64_t seen = own->rings.load();
    if (answer->look()) {
      answer->self.reset();
      return;
    }
    if (own->rings.fetch_sub(seen) != seen) own->post(own);
  });
}

bool Answer::look() {
  bool all = true;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (!choices[i].ended) look_at(i);
    all = all && choices[i].ended;
  }
  if (!all || failed) return all;
  try {
    writer->on_complete();
  } catch (const std::exception& exception) {
    fail({500, std::string("the server failed: ") + exception.what()});
  }
  return true;
}

void Answer::look_at(size_t index) {
  TokenStream& stream = choices[index].stream;
  const bool done = stream.done();  // asked first: then nothing comes after the last piece
  attempt([&] {
    while (std::optional<TokenStream::Piece> piece = stream.poll()) take(index, std::move(*piece));
  });
  // Whatever failed, a choice that is done ends, or its answer would be kept for ever.
  if (done) attempt([&] { end(index); });
}

void Answer::attempt(const std::function<void()>& work) {
  try {
    work();
  } catch (const HttpError& error) {
    fail(error);
  } catch (const std::exception& exception) {
    fail({500, exception.what()});
  }
}

void Answer::take(size_t index, TokenStream::Piece&& piece) {
  Choice& choice = choices[index];
  const Clock::time_point now = Clock::now();
  counts->took_tokens(std::ssize(piece.tokens), !choice.begun,
                      seconds_between(choice.begun ? choice.last : call->arrived(), now));
  if (!piece.tokens.empty()) {
    choice.begun = true;
    choice.last = now;
  }
  if (!failed && !call->cancelled()) writer->on_piece(index, std::move(piece));
}

void Answer::end(size_t index) {
  Choice& choice = choices[index];
  choice.ended = true;
  counts->choices -= 1;
  GenerateResult result = choice.stream.wait();
  counts->ended(result, choice.prompt_tokens, choice.plain);
  if (failed) return;
  // Pieces that came after the call was cancelled were dropped, however the choice ended.
  if (call->cancelled() || result.stats.finish == FinishReason::kCancelled) {
    fail({503, "the answer was cut off: the server is ending"});
  } else if (result.stats.finish == FinishReason::kDeadline) {
    fail({504, "the answer was not complete within the time that this server allows"});
  } else {
    writer->on_end(index, std::move(result));
  }
}

void Answer::fail(const HttpError& error) {
  if (std::exchange(failed, true)) return;
  cancel();
  try {
    writer->on_error(error);
  } catch (const std::exception&) {
    // The client is told nothing more: the exchange closes its connection.
  }
}

}  // namespace

Answers::Answers(Workers& workers, int64_t max_waiting) : workers_(workers), max_waiting_(max_waiting) {}

void Answers::check_count(int64_t choices) const {
  if (choices <= max_waiting_) return;
  throw HttpError(400,
                  fmt::format("n: the request wants {} choices in all; this server takes {} at most", choices,
                              max_waiting_),
                  "n", "invalid_value");
}

void Answers::start(const std::shared_ptr<Call>& call, std::shared_ptr<LoadedModel> model,
                    std::vector<Request> requests, std::unique_ptr<ReplyWriter> writer) {
  ModelCounts& counts = *model->counts;
  const auto count = static_cast<int64_t>(requests.size());
  if (counts.choices.fetch_add(count) + count > max_waiting_) {
    counts.choices -= count;
    throw HttpError(429, "too many requests wait for this model: try again later", {}, "queue_full");
  }
  const auto bell = std::make_shared<Bell>(workers_);
  const auto answer = std::make_shared<Answer>(call, std::move(model), std::move(writer));
  bell->self = bell;
  bell->answer = answer;
  answer->self = answer;
  answer->choices.reserve(requests.size());
  std::exception_ptr error;
  try {
    for (Request& request : requests) {
      request.deadline = call->deadline();
      request.notify = [bell] { bell->ring(); };
      const auto prompt = static_cast<int64_t>(request.prompt.size());
      const bool plain = request.recipe.plain();
      answer->choices.push_back({.stream = answer->model->engine.submit(std::move(request)),
                                 .prompt_tokens = prompt,
                                 .plain = plain,
                                 .last = Clock::now()});
    }
    answer->writer->on_begin();
  } catch (...) {
    error = std::current_exception();
    answer->failed = true;  // whoever catches it tells the client
    answer->cancel();
    counts.choices -= count - std::ssize(answer->choices);
  }
  if (!error) {
    call->on_cancel([weak = std::weak_ptr<Answer>(answer)] {
      if (const std::shared_ptr<Answer> own = weak.lock()) own->cancel();
    });
  }
  bell->post(bell);
  if (error) std::rethrow_exception(error);
}

}  // namespace verbatim::serve
