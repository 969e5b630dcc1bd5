#include "serve/events.h"

#include <string>

namespace verbatim::serve {

void EventStream::begin() {
  HttpResponse head;
  head.content_type = "text/event-stream; charset=utf-8";
  head.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  begun_ = call_->begin_stream(std::move(head));
}

void EventStream::send(std::string_view data, std::string_view name) {
  std::string event;
  event.reserve(data.size() + name.size() + 16);
  if (!name.empty()) event.append("event: ").append(name).append("\n");
  event.append("data: ").append(data).append("\n\n");
  call_->exchange().write(std::move(event));
}

void EventStream::end() {
  call_->exchange().end();
}

void EventStream::fail(const HttpError& error) {
  if (!begun_) {
    call_->fail(error);
    return;
  }
  send(error_body(call_->dialect(), error, call_->request().id),
       call_->dialect() == Dialect::kAnthropic ? "error" : "");
  end();
}

}  // namespace verbatim::serve
