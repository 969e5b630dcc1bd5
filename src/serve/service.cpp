#include "serve/service.h"

#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <list>

#include "serve/context.h"
#include "serve/routes.h"

namespace verbatim::serve {

namespace {

// Reading requests and writing answers are separate, so that long prompts delay no streams.
constexpr int kReaders = 2;
constexpr int kWriters = 2;

/// Bytes that the bodies of requests under way may take together.
int64_t most_body_bytes(const ServerOptions& options) {
  return std::max<int64_t>(64 << 20, 16 * options.max_body_bytes);
}

int64_t most_choices(const ServerOptions& options) {
  return std::max<int64_t>(1, options.engine.max_batch + options.max_queue);
}

}  // namespace

struct Service::Implementation {
  Implementation(const ServerOptions& options_, Models::Log log, const std::function<void(double)>& progress)
      : options(options_),
        models(options, registry, readers, std::move(log), progress),
        answers(writers, most_choices(options)),
        stored_responses(options.max_stored_responses) {}

  ~Implementation() {
    draining = true;
    cancel_all();
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return calls.empty(); });
  }

  void handle(std::shared_ptr<HttpExchange> exchange);
  void cancel_all();

  ServerOptions options;
  std::atomic<bool> draining{false};
  std::atomic<int64_t> body_bytes{0};  // of the calls that are not answered yet
  std::mutex mutex;
  std::condition_variable changed;
  std::list<std::weak_ptr<Call>> calls;  // those that are not answered yet

  prometheus::Registry registry;
  // Engines ring at the workers, so they must be gone before these.
  Workers writers{kWriters};
  Workers readers{kReaders};
  Models models;
  Answers answers;
  Workers computing{1};
  ResponseStore stored_responses;
  Context context{options, models, answers, computing, stored_responses};
};

void Service::Implementation::handle(std::shared_ptr<HttpExchange> exchange) {
  const int64_t bytes = std::ssize(exchange->request().body);
  const bool too_much = body_bytes.fetch_add(bytes) + bytes > most_body_bytes(options);
  std::list<std::weak_ptr<Call>>::iterator place;
  {
    const std::lock_guard lock(mutex);
    place = calls.emplace(calls.end());
  }
  const auto call = std::make_shared<Call>(
      std::move(exchange), std::chrono::steady_clock::now() + options.request_timeout, [this, place, bytes] {
        body_bytes -= bytes;
        const std::lock_guard lock(mutex);
        calls.erase(place);
        changed.notify_all();
      });
  {
    const std::lock_guard lock(mutex);
    *place = call;
  }
  call->exchange().on_gone([weak = std::weak_ptr<Call>(call)] {
    if (const std::shared_ptr<Call> own = weak.lock()) own->cancel();
  });
  if (call->request().path == "/health") {
    if (draining) {
      call->respond(R"({"status":"draining"})", 503);
    } else {
      guarded(*call, [&] { find_route(call->request()); });
      call->respond(R"({"status":"ok"})");
    }
    return;
  }
  if (draining) {
    call->fail({503, "the server is ending"});
    return;
  }
  if (too_much && bytes > 0) {
    call->fail({429, "the requests under way take too much memory: try again later", {}, "queue_full"});
    return;
  }
  readers.post([this, call] {
    if (call->cancelled()) {
      call->fail({503, "the request was cancelled"});
      return;
    }
    guarded(*call, [&] { find_route(call->request())(context, call); });
  });
}

void Service::Implementation::cancel_all() {
  // Whoever ends the calls that run has no use for a model that is still to be loaded.
  if (draining) models.end();
  std::vector<std::shared_ptr<Call>> all;
  {
    const std::lock_guard lock(mutex);
    for (const std::weak_ptr<Call>& each : calls) {
      if (std::shared_ptr<Call> call = each.lock()) all.push_back(std::move(call));
    }
  }
  for (const std::shared_ptr<Call>& call : all) call->cancel();
}

Service::Service(const ServerOptions& options,
                 std::function<void(std::string_view level, const std::string& line)> log,
                 const std::function<void(double)>& progress)
    : implementation_(std::make_unique<Implementation>(options, std::move(log), progress)) {}
Service::~Service() = default;

void Service::handle(std::shared_ptr<HttpExchange> exchange) {
  implementation_->handle(std::move(exchange));
}

void Service::drain() {
  implementation_->draining = true;
}

int64_t Service::unanswered() const {
  const std::lock_guard lock(implementation_->mutex);
  return std::ssize(implementation_->calls);
}

void Service::cancel_all() {
  implementation_->cancel_all();
}

std::string Service::metrics() const {
  for (const Models::Entry& entry : implementation_->models.list()) {
    EngineStats stats;
    if (entry.loaded != nullptr) stats = entry.loaded->engine.stats();
    entry.counts->set_queue(stats.waiting, stats.running);
  }
  return prometheus::TextSerializer().Serialize(implementation_->registry.Collect());
}

}  // namespace verbatim::serve
