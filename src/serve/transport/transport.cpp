#include "serve/transport/transport.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <unordered_map>
#include <vector>

#include "serve/transport/connection.h"
#include "serve/transport/tls.h"
#include "verbatim/error.h"

namespace verbatim::serve {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::chrono::milliseconds kTick{100};
/// Connections beyond the limit that are told so; further ones are closed without a word.
constexpr int64_t kMostRefusing = 64;
constexpr rlim_t kOtherFiles = 256;

/// Lets the process open as many files as connections need, as far as the system allows.
void allow_files(int64_t connections) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = std::min(limit.rlim_max, static_cast<rlim_t>(connections) + kOtherFiles);
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  setrlimit(RLIMIT_NOFILE, &limit);
}

tcp::endpoint endpoint_of(asio::io_context& context, const std::string& host, uint16_t port) {
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  const std::string name = bracketed ? host.substr(1, host.size() - 2) : host;
  error_code error;
  const auto address = asio::ip::make_address(name, error);
  if (!error) return {address, port};
  tcp::resolver resolver(context);
  const auto found = resolver.resolve(name, std::to_string(port), tcp::resolver::numeric_service, error);
  if (error || found.empty()) {
    throw Error(ErrorKind::kMachine, fmt::format("cannot listen on {}: no address has this name", host));
  }
  for (const auto& each : found) {
    if (each.endpoint().address().is_v4()) return each.endpoint();
  }
  return found.begin()->endpoint();
}

}  // namespace

struct Transport::Implementation {
  Implementation(const TransportOptions& options, TransportHooks hooks)
      : hub(std::make_shared<Hub>()), acceptor(hub->context), ticker(hub->context), pause(hub->context) {
    hub->options = options;
    hub->hooks = std::move(hooks);
    hub->closed = [this](Connection* connection) {
      connections.erase(connection);
      open = static_cast<int64_t>(connections.size());
      if (hub->draining && connections.empty()) finish();
    };
    if (!options.tls_certificate.empty()) hub->tls = tls_context(options.tls_certificate, options.tls_key);
    allow_files(options.max_connections);
    listen();
  }

  void listen() {
    const TransportOptions& options = hub->options;
    const tcp::endpoint endpoint = endpoint_of(hub->context, options.host, options.port);
    error_code error;
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error && endpoint.address().is_v6()) {
      error_code ignored;
      acceptor.set_option(boost::asio::ip::v6_only(false), ignored);
    }
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (!error) port = acceptor.local_endpoint(error).port();
    if (!error) return;
    const bool taken = error == asio::error::address_in_use;
    throw Error(
        ErrorKind::kMachine,
        fmt::format("cannot listen on {} port {}: {}", options.host, options.port,
                    taken ? "another program listens there; name another with --port" : error.message()));
  }

  void accept() {
    acceptor.async_accept([this](const error_code& error, tcp::socket socket) {
      if (!acceptor.is_open()) return;
      if (error) {
        // For example there are no more files; connections that close make room.
        if (hub->hooks.warn)
          hub->hooks.warn(fmt::format("a connection was not accepted: {}", error.message()));
        pause.expires_after(kTick);
        pause.async_wait([this](const error_code& stopped) {
          if (!stopped) accept();
        });
        return;
      }
      welcome(std::move(socket));
      accept();
    });
  }

  void welcome(tcp::socket socket) {
    ++accepted;
    const auto already = static_cast<int64_t>(connections.size());
    const bool full = already >= hub->options.max_connections;
    if (full) ++refused;
    if (full && already >= hub->options.max_connections + kMostRefusing) return;
    error_code error;
    socket.set_option(tcp::no_delay(true), error);
    socket.set_option(asio::socket_base::keep_alive(true), error);
    const auto peer = socket.remote_endpoint(error);
    if (error) return;
    auto wire = hub->tls ? tls_wire(std::move(socket), *hub->tls) : plain_wire(std::move(socket));
    const auto connection = std::make_shared<Connection>(hub, std::move(wire), peer.address().to_string());
    connections.emplace(connection.get(), connection);
    open = static_cast<int64_t>(connections.size());
    connection->start(full);
  }

  void tick() {
    ticker.expires_after(kTick);
    ticker.async_wait([this](const error_code& stopped) {
      if (stopped) return;
      const auto now = std::chrono::steady_clock::now();
      for (const auto& connection : all()) connection->tick(now);
      if (!finished) tick();
    });
  }

  std::vector<std::shared_ptr<Connection>> all() const {
    std::vector<std::shared_ptr<Connection>> list;
    list.reserve(connections.size());
    for (const auto& [key, connection] : connections) list.push_back(connection);
    return list;
  }

  void drain() {
    if (hub->draining) return;
    hub->draining = true;
    error_code ignored;
    acceptor.close(ignored);
    for (const auto& connection : all()) connection->drain();
    if (connections.empty()) finish();
  }

  void close() {
    hub->draining = true;
    error_code ignored;
    acceptor.close(ignored);
    for (const auto& connection : all()) connection->close();
    finish();
  }

  /// Lets run() return when what is under way has been aborted.
  void finish() {
    finished = true;
    ticker.cancel();
    pause.cancel();
    for (const auto& timer : timers) timer->cancel();
  }

  const std::shared_ptr<Hub> hub;
  tcp::acceptor acceptor;
  asio::steady_timer ticker;
  asio::steady_timer pause;  ///< until the next connection is accepted
  std::vector<std::unique_ptr<asio::steady_timer>> timers;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections;
  uint16_t port = 0;
  bool finished = false;
  std::atomic<int64_t> open = 0;
  std::atomic<int64_t> accepted = 0;
  std::atomic<int64_t> refused = 0;
};

Transport::Transport(const TransportOptions& options, TransportHooks hooks)
    : implementation_(std::make_unique<Implementation>(options, std::move(hooks))) {}

Transport::~Transport() {
  Implementation& it = *implementation_;
  it.close();
  it.hub->context.restart();
  it.hub->context.poll();  // what was aborted lets go of its connections
  it.hub->hooks = {};
}

uint16_t Transport::port() const {
  return implementation_->port;
}

void Transport::run() {
  Implementation& it = *implementation_;
  it.accept();
  it.tick();
  it.hub->context.run();
}

void Transport::drain() {
  asio::post(implementation_->hub->context, [it = implementation_.get()] { it->drain(); });
}

void Transport::close() {
  asio::post(implementation_->hub->context, [it = implementation_.get()] { it->close(); });
}

void Transport::after(std::chrono::milliseconds time, std::function<void()> work) {
  asio::post(implementation_->hub->context, [it = implementation_.get(), time, work = std::move(work)] {
    if (it->finished) return;
    auto& timer = it->timers.emplace_back(std::make_unique<asio::steady_timer>(it->hub->context, time));
    timer->async_wait([work](const error_code& stopped) {
      if (!stopped) work();
    });
  });
}

TransportCounts Transport::counts() const {
  const Implementation& it = *implementation_;
  return {.connections = it.open,
          .accepted = it.accepted,
          .refused = it.refused,
          .bytes_read = it.hub->bytes_read,
          .bytes_written = it.hub->bytes_written};
}

}  // namespace verbatim::serve
