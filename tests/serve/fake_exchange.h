#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http.h"
#include "serve/json.h"
#include "serve/service.h"

namespace verbatim::test {

using serve::Json;

/// A client without a connection: keeps what it is answered.
class FakeExchange : public serve::HttpExchange {
 public:
  FakeExchange(std::string method, std::string path, std::string body) {
    request_.method = std::move(method);
    request_.path = std::move(path);
    request_.body = std::move(body);
    request_.id = "request-of-a-test";
  }

  const serve::HttpRequest& request() const override { return request_; }
  void respond(serve::HttpResponse response) override {
    const std::lock_guard lock(mutex_);
    answers_ += 1;
    head_ = std::move(response);
    text_ = head_.body;
    complete_ = true;
    changed_.notify_all();
  }
  void begin_stream(serve::HttpResponse head) override {
    const std::lock_guard lock(mutex_);
    answers_ += 1;
    head_ = std::move(head);
    streamed_ = true;
  }
  void write(std::string chunk) override {
    const std::lock_guard lock(mutex_);
    text_ += chunk;
    changed_.notify_all();
  }
  void end() override {
    const std::lock_guard lock(mutex_);
    complete_ = true;
    changed_.notify_all();
  }
  bool gone() const override {
    const std::lock_guard lock(mutex_);
    return gone_;
  }
  void on_gone(std::function<void()> gone) override {
    {
      const std::lock_guard lock(mutex_);
      if (!gone_) {
        on_gone_ = std::move(gone);
        return;
      }
    }
    gone();
  }

  /// Leaves before the answer is complete.
  void leave() {
    std::function<void()> function;
    {
      const std::lock_guard lock(mutex_);
      gone_ = true;
      function = std::exchange(on_gone_, {});
    }
    if (function) function();
  }
  /// Waits until the answer is complete, or until `text` is in it. False after a minute.
  bool wait(std::string_view text = {}) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1), [&] {
      return complete_ || (!text.empty() && text_.find(text) != std::string::npos);
    });
  }

  int status() const { return head_.status; }
  const std::string& text() const { return text_; }
  bool streamed() const { return streamed_; }
  /// The answers that were begun: one, if all is well.
  int answers() const { return answers_; }
  std::string header(std::string_view name) const {
    for (const auto& [key, value] : head_.headers) {
      if (key == name) return value;
    }
    return {};
  }
  Json json() const { return Json::parse(text_); }
  /// The data of a stream's events, but for the last one, "[DONE]".
  std::vector<Json> events() const {
    std::vector<Json> list;
    for (size_t at = 0; (at = text_.find("data: ", at)) != std::string::npos;) {
      at += 6;
      const std::string data = text_.substr(at, text_.find("\n\n", at) - at);
      if (data != "[DONE]") list.push_back(Json::parse(data));
    }
    return list;
  }

 private:
  serve::HttpRequest request_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  serve::HttpResponse head_;
  std::string text_;
  std::function<void()> on_gone_;
  bool streamed_ = false;
  bool complete_ = false;
  bool gone_ = false;
  int answers_ = 0;
};

/// Sends a request to a service without waiting for the answer.
inline std::shared_ptr<FakeExchange> send(serve::Service& service, std::string method, std::string path,
                                          std::string body = {}) {
  auto exchange = std::make_shared<FakeExchange>(std::move(method), std::move(path), std::move(body));
  service.handle(exchange);
  return exchange;
}

/// Sends a request and waits for the whole answer.
inline std::shared_ptr<FakeExchange> ask(serve::Service& service, std::string path, const Json& body) {
  auto exchange = send(service, "POST", std::move(path), body.dump());
  if (!exchange->wait()) throw std::runtime_error("there was no answer within a minute");
  return exchange;
}

inline std::shared_ptr<FakeExchange> get(serve::Service& service, std::string path) {
  auto exchange = send(service, "GET", std::move(path));
  if (!exchange->wait()) throw std::runtime_error("there was no answer within a minute");
  return exchange;
}

}  // namespace verbatim::test
