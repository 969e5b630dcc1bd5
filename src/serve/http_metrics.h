#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "serve/transport/transport.h"

namespace verbatim::serve {

/// The template of a path that a metric is labelled with: itself for the paths that the server has, with
/// "{model}" and "{id}" for the parts that requests choose, and "other" for all that it has not.
std::string path_template(std::string_view path);

/// Counts the requests that were answered, in the format of Prometheus.
class HttpMetrics {
 public:
  HttpMetrics();
  ~HttpMetrics();
  HttpMetrics(const HttpMetrics&) = delete;
  HttpMetrics& operator=(const HttpMetrics&) = delete;

  /// Counts a request. To be called by one thread at a time.
  void count(const AnsweredRequest& request);
  /// The text of all metrics, with those of the connections.
  std::string text(const TransportCounts& counts) const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace verbatim::serve
