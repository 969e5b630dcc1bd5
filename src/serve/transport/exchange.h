#pragma once

#include <memory>

#include "serve/http.h"
#include "serve/transport/connection.h"

namespace verbatim::serve {

/// The way back to a client, through its connection.
class Exchange final : public HttpExchange {
 public:
  Exchange(std::shared_ptr<Connection> connection, std::shared_ptr<AnswerState> answer)
      : connection_(std::move(connection)), answer_(std::move(answer)) {}
  ~Exchange() override { connection_->abandon(*answer_); }

  const HttpRequest& request() const override { return answer_->request; }
  void respond(HttpResponse response) override { connection_->respond(*answer_, std::move(response)); }
  void begin_stream(HttpResponse head) override { connection_->begin_stream(*answer_, std::move(head)); }
  void write(std::string chunk) override { connection_->write(*answer_, chunk); }
  void end() override { connection_->end(*answer_); }
  bool gone() const override { return connection_->gone(*answer_); }
  void on_gone(std::function<void()> gone) override { connection_->on_gone(*answer_, std::move(gone)); }

 private:
  const std::shared_ptr<Connection> connection_;
  const std::shared_ptr<AnswerState> answer_;
};

}  // namespace verbatim::serve
