#include "serve/http_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>

#include "serve/page.h"

namespace verbatim::serve {

namespace {

constexpr std::array<std::string_view, 15> kPaths = {"/health",
                                                     "/metrics",
                                                     "/tokenize",
                                                     "/detokenize",
                                                     "/v1/models",
                                                     "/v1/completions",
                                                     "/v1/chat/completions",
                                                     "/v1/responses",
                                                     "/v1/embeddings",
                                                     "/v1/messages",
                                                     "/v1/messages/count_tokens",
                                                     "/v1/tokenize",
                                                     "/v1/detokenize",
                                                     "/v1/health",
                                                     "/v1/recipes"};
constexpr std::array<std::string_view, 10> kMethods = {"GET",     "HEAD",  "POST",  "PUT",     "DELETE",
                                                       "OPTIONS", "PATCH", "TRACE", "CONNECT", ""};

/// Seconds within which answers are counted: from those that wait for nothing to long texts.
const prometheus::Histogram::BucketBoundaries kSeconds = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
                                                          2.5,   5,    10,    30,   60,  120,  300, 600};

}  // namespace

std::string path_template(std::string_view path) {
  if (std::find(kPaths.begin(), kPaths.end(), path) != kPaths.end()) return std::string(path);
  if (page_file(path)) return "page";
  if (path.starts_with("/v1/models/")) return "/v1/models/{model}";
  if (path.starts_with("/v1/responses/")) return "/v1/responses/{id}";
  return "other";
}

struct HttpMetrics::Implementation {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& requests =
      prometheus::BuildCounter()
          .Name("verbatim_http_requests_total")
          .Help(
              "Requests that were answered, by path, method and status; status 0 is a client that left first")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& cut =
      prometheus::BuildCounter()
          .Name("verbatim_http_answers_cut_total")
          .Help("Answers whose client left, or was disconnected, before their end")
          .Register(registry);
  prometheus::Family<prometheus::Histogram>& seconds =
      prometheus::BuildHistogram()
          .Name("verbatim_http_request_seconds")
          .Help("Seconds from a request's end to the last byte of its answer")
          .Register(registry);
  prometheus::Gauge& connections = prometheus::BuildGauge()
                                       .Name("verbatim_http_connections")
                                       .Help("Open connections")
                                       .Register(registry)
                                       .Add({});
  prometheus::Counter& accepted =
      counter("verbatim_http_connections_total", "Connections that were accepted");
  prometheus::Counter& refused =
      counter("verbatim_http_connections_refused_total", "Connections beyond the limit");
  prometheus::Counter& received = counter("verbatim_http_received_bytes_total", "Bytes that clients sent");
  prometheus::Counter& sent = counter("verbatim_http_sent_bytes_total", "Bytes that were sent to clients");

  prometheus::Counter& counter(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({});
  }
};

HttpMetrics::HttpMetrics() : implementation_(std::make_unique<Implementation>()) {
  implementation_->cut.Add({});
}

HttpMetrics::~HttpMetrics() = default;

void HttpMetrics::count(const AnsweredRequest& request) {
  const std::string path = path_template(request.path);
  const bool known = std::find(kMethods.begin(), kMethods.end(), request.method) != kMethods.end();
  const std::string method = known ? request.method : "other";
  implementation_->requests
      .Add({{"path", path}, {"method", method}, {"status", std::to_string(request.status)}})
      .Increment();
  implementation_->seconds.Add({{"path", path}}, kSeconds).Observe(request.seconds);
  if (!request.whole) implementation_->cut.Add({}).Increment();
}

std::string HttpMetrics::text(const TransportCounts& counts) const {
  Implementation& it = *implementation_;
  const auto raise = [](prometheus::Counter& counter, int64_t to) {
    counter.Increment(std::max(0.0, static_cast<double>(to) - counter.Value()));
  };
  it.connections.Set(static_cast<double>(counts.connections));
  raise(it.accepted, counts.accepted);
  raise(it.refused, counts.refused);
  raise(it.received, counts.bytes_read);
  raise(it.sent, counts.bytes_written);
  return prometheus::TextSerializer().Serialize(it.registry.Collect());
}

}  // namespace verbatim::serve
