#include "serve/front.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "serve/errors.h"
#include "serve/gate.h"
#include "serve/http_metrics.h"
#include "serve/page.h"
#include "serve/transport/transport.h"

namespace verbatim::serve {

namespace {

/// What the service has beyond its own limit to end an answer that takes too long, before it is cut off.
constexpr std::chrono::seconds kAnswerMargin{10};
/// Answers that were cancelled say so to their clients within this time.
constexpr std::chrono::seconds kLastWords{1};

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::kUsage, what);
}

void check(const ServerOptions& options) {
  if (options.models.empty()) refuse("a server needs a model");
  if (options.max_body_bytes < 1) refuse("the largest body of a request has a byte at least");
  if (options.max_connections < 1) refuse("a server needs a connection at least");
  for (const auto& [what, time] :
       {std::pair{"header", options.header_timeout}, std::pair{"idle", options.idle_timeout},
        std::pair{"request", options.request_timeout}}) {
    if (time.count() < 1) refuse(fmt::format("the {} timeout is a second at least", what));
  }
  if (options.grace.count() < 0) refuse("the grace time is not negative");
  if (options.tls_certificate.empty() != options.tls_key.empty())
    refuse("TLS takes a certificate and its key");
  if (std::any_of(options.api_keys.begin(), options.api_keys.end(),
                  [](const auto& key) { return key.empty(); }))
    refuse("a key of the server is empty");
}

TransportOptions transport_options(const ServerOptions& options) {
  return {.host = options.host,
          .port = options.port,
          .tls_certificate = options.tls_certificate,
          .tls_key = options.tls_key,
          .request = {.body_bytes = options.max_body_bytes},
          .max_connections = options.max_connections,
          .header_timeout = options.header_timeout,
          .idle_timeout = options.idle_timeout,
          .answer_timeout = options.request_timeout + kAnswerMargin};
}

}  // namespace

struct Front::Implementation {
  Implementation(const ServerOptions& given, Backend behind)
      : options(given),
        backend(std::move(behind)),
        log((check(options), options.log), options.json_log),
        gate(options),
        transport(transport_options(options),
                  {.screen = [this](const HttpRequest& request) { return screen(request); },
                   .decorate = [this](const HttpRequest& request,
                                      HttpResponse& response) { gate.decorate(request, response); },
                   .handle = [this](std::shared_ptr<HttpExchange> exchange) { handle(std::move(exchange)); },
                   .answered = [this](const AnsweredRequest& request) { answered(request); },
                   .warn = [this](const std::string& message) { log.say("warning", message); }}) {}

  std::optional<HttpResponse> screen(const HttpRequest& request) {
    if (stops > 0) {
      return error_response(dialect_of(request.path), HttpError(503, "the server is ending; try another"),
                            request.id);
    }
    return gate.screen(request);
  }

  void handle(std::shared_ptr<HttpExchange> exchange) {
    const HttpRequest& request = exchange->request();
    if (const PageFile* const file = page_file(request.path)) {
      exchange->respond(page_response(*file, request));
    } else if (request.path == "/metrics") {
      exchange->respond(metrics_response(request));
    } else {
      backend.handle(std::move(exchange));
    }
  }

  HttpResponse metrics_response(const HttpRequest& request) {
    if (request.method != "GET" && request.method != "HEAD") {
      HttpResponse response = error_response(Dialect::kOpenAi, HttpError(405, "metrics are only to be read"));
      response.headers.emplace_back("Allow", "GET, HEAD");
      return response;
    }
    return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
            .body = metrics.text(transport.counts()) + backend.metrics()};
  }

  void answered(const AnsweredRequest& request) {
    metrics.count(request);
    if (!options.access_log) return;
    log.access({.method = request.method,
                .path = request.path,
                .status = request.status,
                .whole = request.whole,
                .bytes = request.bytes,
                .milliseconds = request.seconds * 1000,
                .id = request.id,
                .peer = request.peer});
  }

  void stop() {
    const int before = stops++;
    if (before == 0) {
      backend.drain();
      transport.drain();
      transport.after(options.grace, [this] { cut_off(kLastWords); });
    } else {
      cut_off(std::chrono::milliseconds(0));
    }
  }

  /// Ends the answers that are under way, and after a time their connections.
  void cut_off(std::chrono::milliseconds last_words) {
    backend.cancel_all();
    if (last_words.count() == 0) return transport.close();
    transport.after(last_words, [this] { transport.close(); });
  }

  const ServerOptions options;
  const Backend backend;
  Log log;
  const Gate gate;
  HttpMetrics metrics;
  std::atomic<int> stops = 0;
  Transport transport;
};

Front::Front(const ServerOptions& options, Backend backend)
    : implementation_(std::make_unique<Implementation>(options, std::move(backend))) {}

Front::~Front() = default;

Log& Front::log() {
  return implementation_->log;
}

uint16_t Front::port() const {
  return implementation_->transport.port();
}

void Front::run() {
  implementation_->transport.run();
}

void Front::stop() {
  implementation_->stop();
}

}  // namespace verbatim::serve
