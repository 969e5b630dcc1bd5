#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "serve/errors.h"
#include "serve/http.h"

namespace verbatim::serve {

/// A request on its way through the service, from its arrival to the end of its answer. The service counts
/// the calls that exist as unanswered.
class Call {
 public:
  /// `ended` is called when the call is destroyed.
  Call(std::shared_ptr<HttpExchange> exchange, std::chrono::steady_clock::time_point deadline,
       std::function<void()> ended);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  HttpExchange& exchange() const { return *exchange_; }
  const std::shared_ptr<HttpExchange>& shared_exchange() const { return exchange_; }
  const HttpRequest& request() const { return exchange_->request(); }
  Dialect dialect() const { return dialect_; }
  std::chrono::steady_clock::time_point arrived() const { return arrived_; }
  /// When the answer must be complete.
  std::chrono::steady_clock::time_point deadline() const { return deadline_; }

  // The first answer is the one that counts; later ones are dropped.

  /// Answers with JSON.
  void respond(std::string body, int status = 200);
  /// Answers with an error in the shape of the call's dialect.
  void fail(const HttpError& error);
  /// Begins an answer of unknown length; false if the call has its answer already.
  bool begin_stream(HttpResponse head);

  /// Ends the call's work early: the client has left, or the service ends. Any thread.
  void cancel();
  bool cancelled() const { return cancelled_; }
  /// Sets the function that cancel() calls; it is called at once if the call is cancelled already.
  void on_cancel(std::function<void()> function);

 private:
  /// Adds the header that Anthropic's clients look for.
  void name_request(HttpResponse& response) const;

  std::shared_ptr<HttpExchange> exchange_;
  Dialect dialect_;
  std::chrono::steady_clock::time_point arrived_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point deadline_;
  std::function<void()> ended_;
  std::atomic<bool> answered_{false};
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  std::function<void()> on_cancel_;
};

/// Runs a part of a call's work; what it throws becomes the call's answer: an HttpError itself, bad input and
/// wrong usage a 400, a lack of memory a 503, and anything else a 500.
void guarded(Call& call, const std::function<void()>& work);

/// Throws the HttpError of a call whose work is to end: 503 if it was cancelled, 504 if its time is over.
void check_under_way(const Call& call);

/// The error that a client is told for an exception that the engine threw while it took a request in.
HttpError error_of(const std::exception& exception);

}  // namespace verbatim::serve
