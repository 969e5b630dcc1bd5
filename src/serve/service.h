#pragma once

#include <functional>
#include <memory>
#include <string>

#include "serve/http.h"
#include "verbatim/serve.h"

namespace verbatim::serve {

/// Answers the requests of all interfaces with the models of a server. It knows nothing of connections: the
/// transport in front of it checks keys, sizes and origins before.
class Service {
 public:
  /// Loads the first model. `log` takes a line for people at one of the levels "info", "warning" and "error".
  Service(const ServerOptions& options,
          std::function<void(std::string_view level, const std::string& line)> log,
          const std::function<void(double)>& progress = {});
  /// Cancels what is running and waits until it has ended.
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Answers a request now or later. Does not block.
  void handle(std::shared_ptr<HttpExchange> exchange);
  /// From now on refuses requests with 503.
  void drain();
  /// Requests that are not answered yet.
  int64_t unanswered() const;
  /// Cancels all of them.
  void cancel_all();
  /// The service's metrics in the text format of Prometheus.
  std::string metrics() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace verbatim::serve
