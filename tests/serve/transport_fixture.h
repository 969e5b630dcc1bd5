#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "serve/raw_client.h"
#include "serve/transport/transport.h"
#include "support/eventually.h"

namespace verbatim::test {

inline constexpr const char* kGetHello = "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A transport that answers a few paths: /hello with a word, /echo with the request's body, /stream with
/// three pieces from another thread, /endless with pieces until the client is gone, /silent with one piece
/// and no end until it is gone, /never with nothing until it is gone, /large with 8 MiB, /large-stream with a
/// piece of 8 MiB, /drop by dropping the exchange.
class Transported : public ::testing::Test {
 protected:
  void start(serve::TransportOptions options = {}) {
    options.linger_timeout = std::chrono::milliseconds(300);
    serve::TransportHooks hooks;
    hooks.handle = [this](std::shared_ptr<serve::HttpExchange> exchange) { handle(std::move(exchange)); };
    hooks.answered = [this](const serve::AnsweredRequest& request) {
      const std::lock_guard lock(mutex_);
      answered_.push_back(request);
    };
    transport_ = std::make_unique<serve::Transport>(options, hooks);
    runner_ = std::thread([this] { transport_->run(); });
  }

  void TearDown() override {
    if (transport_) transport_->close();
    if (runner_.joinable()) runner_.join();
    for (std::thread& thread : threads_) thread.join();
    kept_.clear();
  }

  RawClient client() { return RawClient(transport_->port()); }

  /// Whether a client that connects now is answered.
  void expect_serves() { EXPECT_EQ(client().ask(kGetHello).body, "hello"); }

  std::vector<serve::AnsweredRequest> answered() {
    const std::lock_guard lock(mutex_);
    return answered_;
  }

  std::unique_ptr<serve::Transport> transport_;
  std::thread runner_;
  std::atomic<int> gone_ = 0;
  std::atomic<int> waiting_ = 0;

 private:
  void handle(std::shared_ptr<serve::HttpExchange> exchange) {
    const std::string& path = exchange->request().path;
    if (path == "/hello") return exchange->respond({.content_type = "text/plain", .body = "hello"});
    if (path == "/echo") return exchange->respond({.body = exchange->request().body});
    if (path == "/large") return exchange->respond({.body = std::string(8 << 20, 'x')});
    if (path == "/drop") return;
    if (path == "/large-stream") {
      exchange->begin_stream({.content_type = "text/event-stream"});
      exchange->write(std::string(8 << 20, 'x'));
      return exchange->end();
    }
    if (path == "/stream" || path == "/endless") {
      if (path == "/endless") exchange->on_gone([this] { ++gone_; });
      threads_.emplace_back([exchange, endless = path == "/endless"] {
        exchange->begin_stream({.content_type = "text/event-stream"});
        for (const char* piece : {"one ", "two ", "three"}) exchange->write(piece);
        while (endless && !exchange->gone()) {
          exchange->write(std::string(16384, 'x'));
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        exchange->end();
      });
      return;
    }
    if (path == "/silent") {
      exchange->on_gone([this] { ++gone_; });
      exchange->begin_stream({.content_type = "text/event-stream"});
      exchange->write("data: one\n\n");
      kept_.push_back(exchange);
      return;
    }
    if (path == "/never") {
      exchange->on_gone([this] { ++gone_; });
      kept_.push_back(exchange);
      ++waiting_;
      return;
    }
    exchange->respond({.status = 404, .body = path + " is not there"});
  }

  std::mutex mutex_;
  std::vector<serve::AnsweredRequest> answered_;
  std::vector<std::thread> threads_;
  std::vector<std::shared_ptr<serve::HttpExchange>> kept_;
};

}  // namespace verbatim::test
