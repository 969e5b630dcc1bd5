#include "serve/call.h"

#include <new>
#include <utility>

#include "verbatim/error.h"

namespace verbatim::serve {

Call::Call(std::shared_ptr<HttpExchange> exchange, std::chrono::steady_clock::time_point deadline,
           std::function<void()> ended)
    : exchange_(std::move(exchange)),
      dialect_(dialect_of(exchange_->request().path)),
      deadline_(deadline),
      ended_(std::move(ended)) {}

Call::~Call() {
  exchange_.reset();
  if (ended_) ended_();
}

void Call::respond(std::string body, int status) {
  if (answered_.exchange(true)) return;
  HttpResponse response{.status = status, .body = std::move(body)};
  name_request(response);
  exchange_->respond(std::move(response));
}

void Call::fail(const HttpError& error) {
  if (answered_.exchange(true)) return;
  exchange_->respond(error_response(dialect_, error, request().id));
}

bool Call::begin_stream(HttpResponse head) {
  if (answered_.exchange(true)) return false;
  name_request(head);
  exchange_->begin_stream(std::move(head));
  return true;
}

void Call::name_request(HttpResponse& response) const {
  if (dialect_ == Dialect::kAnthropic) response.headers.emplace_back("request-id", request().id);
}

void Call::cancel() {
  std::function<void()> function;
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    function = std::exchange(on_cancel_, {});
  }
  if (function) function();
}

void Call::on_cancel(std::function<void()> function) {
  {
    const std::lock_guard lock(mutex_);
    if (!cancelled_) {
      on_cancel_ = std::move(function);
      return;
    }
  }
  function();
}

HttpError error_of(const std::exception& exception) {
  if (const auto* const error = dynamic_cast<const HttpError*>(&exception)) return *error;
  if (const auto* const error = dynamic_cast<const Error*>(&exception)) {
    return {error->kind() == ErrorKind::kMachine ? 503 : 400, error->what()};
  }
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr) {
    return {503, "the server has no memory left for this request"};
  }
  return {500, std::string("the server failed: ") + exception.what()};
}

void check_under_way(const Call& call) {
  if (call.cancelled()) throw HttpError(503, "the request was cancelled");
  if (std::chrono::steady_clock::now() >= call.deadline()) {
    throw HttpError(504, "the answer was not complete within the time that this server allows");
  }
}

void guarded(Call& call, const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& exception) {
    call.fail(error_of(exception));
  }
}

}  // namespace verbatim::serve
