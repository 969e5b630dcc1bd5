#include "serve/front.h"
#include "serve/service.h"
#include "verbatim/serve.h"

namespace verbatim {

struct Server::Implementation {
  Implementation(const ServerOptions& options, const std::function<void(double)>& progress)
      : front(options, {.handle =
                            [this](std::shared_ptr<serve::HttpExchange> exchange) {
                              service.handle(std::move(exchange));
                            },
                        .drain = [this] { service.drain(); },
                        .cancel_all = [this] { service.cancel_all(); },
                        .metrics = [this] { return service.metrics(); }}),
        service(
            options,
            [this](std::string_view level, const std::string& line) { front.log().say(level, line); },
            progress) {}

  serve::Front front;  // first, so that a port that is taken is told before a model is loaded
  serve::Service service;
};

Server::Server(ServerOptions options, const std::function<void(double)>& progress)
    : implementation_(std::make_unique<Implementation>(options, progress)) {}

Server::~Server() = default;

uint16_t Server::port() const {
  return implementation_->front.port();
}

void Server::run() {
  implementation_->front.run();
}

void Server::stop() {
  implementation_->front.stop();
}

}  // namespace verbatim
