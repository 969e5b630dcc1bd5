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
  if (!answered_.exchange(true)) exchange_->respond({.status = status, .body = std::move(body)});
}

void Call::fail(const HttpError& error) {
  if (!answered_.exchange(true)) exchange_->respond(error_response(dialect_, error));
}

bool Call::begin_stream(HttpResponse head) {
  if (answered_.exchange(true)) return false;
  exchange_->begin_stream(std::move(head));
  return true;
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

void guarded(Call& call, const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& exception) {
    call.fail(error_of(exception));
  }
}

}  // namespace verbatim::serve
