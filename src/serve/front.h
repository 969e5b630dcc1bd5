#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "serve/http.h"
#include "serve/log.h"
#include "verbatim/serve.h"

namespace verbatim::serve {

/// What answers the requests that a front lets pass. The functions are called on the thread of Front::run();
/// `drain` and `cancel_all` on that of Front::stop() as well.
struct Backend {
  HttpHandler handle;
  std::function<void()> drain;           ///< no further request will come
  std::function<void()> cancel_all;      ///< ends what is under way
  std::function<std::string()> metrics;  ///< in the text format of Prometheus
};

/// All of a server but its answers: connections, keys and origins, the page's files, metrics, the log, and
/// the way in which it ends.
class Front {
 public:
  /// Opens the port. Throws as Server does.
  Front(const ServerOptions& options, Backend backend);
  /// Closes what is still open. run() must have returned.
  ~Front();
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  Log& log();
  uint16_t port() const;
  /// Works until stop() was called and what it waits for is over.
  void run();
  /// Makes run() end as Server::stop() does. May be called from any thread.
  void stop();

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace verbatim::serve
