#pragma once

#include <memory>
#include <vector>

#include "serve/call.h"
#include "serve/models.h"
#include "serve/workers.h"

namespace verbatim::serve {

/// What an interface makes of the tokens of its choices as they come: a whole answer or a stream of events.
/// An answer has one writer, whose members are called by one worker at a time. They must not wait.
class ReplyWriter {
 public:
  virtual ~ReplyWriter() = default;

  /// The engine has taken all choices in. A stream begins here.
  virtual void on_begin() {}
  /// The next piece of a choice. All pieces of a choice come before its end.
  virtual void on_piece(size_t choice, TokenStream::Piece&& piece) = 0;
  /// A choice has ended, for any reason but kCancelled and kDeadline, which are errors.
  virtual void on_end(size_t choice, GenerateResult&& result) = 0;
  /// All choices have ended: completes the answer.
  virtual void on_complete() = 0;
  /// The answer failed; nothing further is called. To be said as an answer, or as an event if a stream has
  /// begun.
  virtual void on_error(const HttpError& error) = 0;
};

/// Gives requests to engines and drives their answers by the engines' notifications on a few workers: no
/// thread waits for a model or for a client.
class Answers {
 public:
  /// `max_waiting` is the most choices of a model that run or wait.
  Answers(Workers& workers, int64_t max_waiting);

  /// Refuses with HttpError(400), naming the field `n`, more choices than could ever run and wait together.
  void check_count(int64_t choices) const;

  /// Submits a request for each choice and lets `writer` make an answer of them. The call's deadline becomes
  /// the requests', and their `notify` is set. When the call is cancelled, the requests are. Throws
  /// HttpError(429) if too many choices run or wait, and what Engine::submit() throws; nothing is running
  /// then.
  void start(const std::shared_ptr<Call>& call, std::shared_ptr<LoadedModel> model,
             std::vector<Request> requests, std::unique_ptr<ReplyWriter> writer);

 private:
  Workers& workers_;
  int64_t max_waiting_;
};

}  // namespace verbatim::serve
