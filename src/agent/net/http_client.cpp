#include "agent/net/http_client.h"

#include <fmt/format.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <limits>
#include <optional>

#include "agent/json.h"
#include "verbatim/error.h"
#include "verbatim/text.h"

namespace verbatim::agent {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;

constexpr size_t kMostEventBytes = 64 << 20;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

/// A request on a stream: a socket, or TLS over one.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(RealLoop& loop, HttpUrl url, HttpCallHooks hooks)
      : loop_(loop),
        url_(std::move(url)),
        hooks_(std::move(hooks)),
        resolver_(loop.context()),
        socket_(loop.context()) {}

  void start(const HttpCallOptions& options) {
    request_.method_string(options.method);
    request_.target(url_.target);
    request_.version(11);
    request_.set(http::field::host, url_.host + ":" + url_.port);
    request_.set(http::field::user_agent, "verbatim-agent");
    request_.set(http::field::connection, "close");
    for (const auto& [name, value] : options.headers) request_.set(name, value);
    request_.body() = options.body;
    request_.prepare_payload();
    parser_.emplace();
    parser_->body_limit(std::numeric_limits<uint64_t>::max());  // whoever reads counts
    resolver_.async_resolve(
        url_.host, url_.port, [self = shared_from_this()](const auto& error, const auto& found) {
          if (self->failed(error, "finding the host")) return;
          asio::async_connect(self->socket_, found, [self](const auto& failure, const auto&) {
            if (self->failed(failure, "connecting")) return;
            self->connected();
          });
        });
  }

  /// Closes the connection; nothing is called any more.
  void drop() {
    dropped_ = true;
    boost::system::error_code ignored;
    resolver_.cancel();
    socket_.close(ignored);
  }

  bool sent() const { return sent_; }

 private:
  /// Whether to go on no further.
  bool failed(const boost::system::error_code& error, const char* what) {
    if (dropped_) return true;
    loop_.enter();
    if (!error) return false;
    end(fmt::format("{}:{}: {}: {}", shown(url_.host, kShownBytes), url_.port, what, error.message()));
    return true;
  }

  void end(const std::string& error) {
    const auto self = shared_from_this();
    const auto ended = std::move(hooks_.ended);
    hooks_ = {};
    drop();
    if (ended) ended(error);
  }

  void connected() {
    boost::system::error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    if (!url_.tls) {
      send(socket_);
      return;
    }
    try {
      tls_context_.emplace(asio::ssl::context::tls_client);
      tls_context_->set_default_verify_paths();
      tls_.emplace(socket_, *tls_context_);
      tls_->set_verify_mode(asio::ssl::verify_peer);
      tls_->set_verify_callback(asio::ssl::host_name_verification(url_.host));
      SSL_set_tlsext_host_name(tls_->native_handle(), url_.host.c_str());
    } catch (const std::exception& error) {
      end(fmt::format("{}: cannot begin TLS: {}", url_.host, error.what()));
      return;
    }
    tls_->async_handshake(asio::ssl::stream_base::client, [self = shared_from_this()](const auto& error) {
      if (!self->failed(error, "agreeing on TLS")) self->send(*self->tls_);
    });
  }

  template <typename Stream>
  void send(Stream& stream) {
    sent_ = true;
    http::async_write(stream, request_, [self = shared_from_this(), &stream](const auto& error, size_t) {
      if (self->failed(error, "sending")) return;
      http::async_read_header(
          stream, self->input_, *self->parser_, [self, &stream](const auto& failure, size_t) {
            if (self->failed(failure, "reading the answer")) return;
            HttpHead head{.status = static_cast<int>(self->parser_->get().result_int())};
            for (const auto& field : self->parser_->get()) {
              head.headers.emplace_back(lower({field.name_string().data(), field.name_string().size()}),
                                        std::string(field.value()));
            }
            if (self->hooks_.head) self->hooks_.head(head);
            if (!self->dropped_) self->read(stream);
          });
    });
  }

  template <typename Stream>
  void read(Stream& stream) {
    if (parser_->is_done()) {
      end({});
      return;
    }
    parser_->get().body().data = piece_.data();
    parser_->get().body().size = piece_.size();
    http::async_read_some(stream, input_, *parser_, [self = shared_from_this(), &stream](auto error, size_t) {
      if (error == http::error::need_buffer) error = {};
      const size_t count = self->piece_.size() - self->parser_->get().body().size;
      if (!self->dropped_) self->loop_.enter();
      if (!self->dropped_ && count > 0 && self->hooks_.body) self->hooks_.body({self->piece_.data(), count});
      if (self->failed(error, "reading the answer")) return;
      self->read(stream);
    });
  }

  RealLoop& loop_;
  HttpUrl url_;
  HttpCallHooks hooks_;
  tcp::resolver resolver_;
  tcp::socket socket_;
  std::optional<asio::ssl::context> tls_context_;
  std::optional<asio::ssl::stream<tcp::socket&>> tls_;
  http::request<http::string_body> request_;
  boost::beast::flat_buffer input_;
  std::optional<http::response_parser<http::buffer_body>> parser_;
  std::array<char, 16384> piece_{};
  bool dropped_ = false;
  bool sent_ = false;
};

class StartedCall : public HttpCall {
 public:
  explicit StartedCall(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  ~StartedCall() override { exchange_->drop(); }
  bool sent() const override { return exchange_->sent(); }

 private:
  std::shared_ptr<Exchange> exchange_;
};

}  // namespace

HttpUrl HttpUrl::parse(const std::string& url) {
  const auto fail = [&]() -> HttpUrl {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} is no address; write http://HOST:PORT/PATH", shown(url, kShownBytes)));
  };
  HttpUrl parsed;
  std::string_view rest = url;
  if (rest.starts_with("https://")) {
    parsed.tls = true;
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    return fail();
  }
  for (const char c : rest) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '\x7F') return fail();
  }
  const size_t slash = std::min(rest.find_first_of("/?"), rest.size());
  std::string_view place = rest.substr(0, slash);
  parsed.target = rest.substr(slash, rest.find('#') - slash);
  if (!parsed.target.starts_with('/')) parsed.target.insert(0, "/");
  const size_t bracket = place.rfind(']');
  const size_t colon = place.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  parsed.port = has_port ? std::string(place.substr(colon + 1)) : parsed.tls ? "443" : "80";
  if (has_port) place = place.substr(0, colon);
  if (place.starts_with('[') && place.ends_with(']')) place = place.substr(1, place.size() - 2);
  parsed.host = place;
  const bool digits =
      !parsed.port.empty() && parsed.port.size() <= 5 &&
      std::all_of(parsed.port.begin(), parsed.port.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (parsed.host.empty() || !digits || parsed.host.find('@') != std::string::npos) return fail();
  return parsed;
}

std::string HttpHead::header(std::string_view name) const {
  for (const auto& [known, value] : headers) {
    if (known == name) return value;
  }
  return {};
}

std::unique_ptr<HttpCall> start_http(RealLoop& loop, HttpCallOptions options, HttpCallHooks hooks) {
  auto exchange = std::make_shared<Exchange>(loop, HttpUrl::parse(options.url), std::move(hooks));
  exchange->start(options);
  return std::make_unique<StartedCall>(std::move(exchange));
}

void EventStream::add(std::string_view piece, const std::function<void(const std::string&)>& event) {
  while (!piece.empty()) {
    const size_t end = piece.find('\n');
    line_ += piece.substr(0, end);
    if (line_.size() + data_.size() > kMostEventBytes) {
      throw Error(ErrorKind::kBadInput, "an event of the stream is larger than 64 MiB");
    }
    if (end == std::string_view::npos) return;
    piece.remove_prefix(end + 1);
    std::string line = std::exchange(line_, {});
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) {
      const std::string data = std::exchange(data_, {});
      if (std::exchange(has_data_, false)) event(data);
    } else if (line.starts_with("data:")) {
      if (has_data_) data_ += '\n';
      data_ += std::string_view(line).substr(line.size() > 5 && line[5] == ' ' ? 6 : 5);
      has_data_ = true;
    }
  }
}

}  // namespace verbatim::agent
