#include "serve/transport/request_parser.h"

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>

#include <algorithm>
#include <limits>

#include "serve/target.h"

namespace verbatim::serve {

namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

bool same_word(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

std::string_view view(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

class RequestParser::Implementation : public http::basic_parser<true> {
 public:
  explicit Implementation(const RequestLimits& limits) : limits_(limits) {
    header_limit(static_cast<uint32_t>(limits.head_bytes));
    // Checked here, so that the head is known by then. Without a limit Beast 1.74 takes every length for too
    // long.
    body_limit(std::numeric_limits<uint64_t>::max());
  }

  size_t take_in(std::string_view bytes);
  /// Ends the reading with an error.
  void refuse(int status, std::string problem) {
    state_ = State::kBad;
    status_ = status;
    problem_ = std::move(problem);
  }

  State state_ = State::kHead;
  int status_ = 400;
  std::string problem_;
  HttpRequest request_;
  int version_ = 11;

 private:
  void on_request_impl(http::verb, boost::beast::string_view method, boost::beast::string_view target,
                       int version, error_code& ec) override {
    request_.method = view(method);
    target_ = view(target);
    version_ = version;
    if (version != 10 && version != 11) ec = http::error::bad_version;
  }
  void on_response_impl(int, boost::beast::string_view, int, error_code&) override {}
  void on_field_impl(http::field, boost::beast::string_view name, boost::beast::string_view value,
                     error_code& ec) override {
    if (in_body_) return;  // what follows a body in chunks is of no use
    if (request_.headers.size() >= limits_.headers) {
      ec = http::error::header_limit;
      return;
    }
    request_.headers.emplace_back(view(name), view(value));
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(boost::optional<uint64_t> const&, error_code&) override {}
  size_t add(boost::beast::string_view body, error_code& ec) {
    if (request_.body.size() + body.size() > static_cast<uint64_t>(limits_.body_bytes)) {
      ec = http::error::body_limit;
      return 0;
    }
    request_.body.append(body.data(), body.size());
    return body.size();
  }
  size_t on_body_impl(boost::beast::string_view body, error_code& ec) override { return add(body, ec); }
  void on_chunk_header_impl(uint64_t size, boost::beast::string_view, error_code& ec) override {
    if (size > static_cast<uint64_t>(limits_.body_bytes)) ec = http::error::body_limit;
  }
  size_t on_chunk_body_impl(uint64_t, boost::beast::string_view body, error_code& ec) override {
    return add(body, ec);
  }
  void on_finish_impl(error_code&) override {}

  void end_head();
  void fail(const error_code& ec);
  void too_large() {
    refuse(413, fmt::format("the request's body is larger than the {} bytes that are allowed; send less, or "
                            "start the server with a larger --max-body",
                            limits_.body_bytes));
  }
  void too_long_head() {
    refuse(431, fmt::format("the request's head has more than {} bytes or {} headers", limits_.head_bytes,
                            limits_.headers));
  }

  RequestLimits limits_;
  std::string target_;
  bool in_body_ = false;
};

size_t RequestParser::Implementation::take_in(std::string_view bytes) {
  size_t read = 0;
  while (state_ != State::kDone && state_ != State::kBad) {
    const bool head = state_ == State::kHead;
    // The head arrives at put() in one piece.
    if (head && bytes.size() - read == 0) break;
    if (!head) eager(true);
    error_code ec;
    const size_t now = put(boost::asio::const_buffer(bytes.data() + read, bytes.size() - read), ec);
    read += now;
    if (ec && ec != http::error::need_more) {
      fail(ec);
      break;
    }
    if (head && is_header_done()) {
      end_head();
      break;
    }
    if (is_done()) state_ = State::kDone;
    const size_t left = bytes.size() - read;
    // What lies between pieces of a body is short.
    if (ec == http::error::need_more && left > limits_.head_bytes) {
      head ? too_long_head() : refuse(400, "a chunk of the request's body has no end to its head");
    }
    if (ec == http::error::need_more || left == 0) break;
  }
  return read;
}

void RequestParser::Implementation::end_head() {
  in_body_ = true;
  state_ = State::kHeadDone;
  const auto target = serve::parse_target(target_);
  if (!target) return refuse(400, "the request's target is no path of a server");
  request_.path = target->path;
  request_.query = target->query;
  int hosts = 0;
  for (const auto& [name, value] : request_.headers) {
    if (same_word(name, "host") && ++hosts) {
      if (host_of(value).empty() && !value.empty()) return refuse(400, "the header Host names no host");
    } else if (same_word(name, "transfer-encoding") && !same_word(value, "chunked")) {
      return refuse(501, "of transfer encodings only chunked is understood");
    } else if (same_word(name, "content-encoding") && !same_word(value, "identity")) {
      return refuse(415, "a compressed body is not understood; send it as it is");
    } else if (same_word(name, "expect") && !same_word(value, "100-continue")) {
      return refuse(417, "of expectations only 100-continue is understood");
    }
  }
  if (hosts > 1) return refuse(400, "the header Host is there more than once");
  if (hosts == 0 && version_ == 11) return refuse(400, "the header Host is missing");
  if (!target->authority.empty()) {  // goes before the header
    for (auto& [name, value] : request_.headers) {
      if (same_word(name, "host")) value = target->authority;
    }
  }
  const auto length = content_length();
  if (length && *length > static_cast<uint64_t>(limits_.body_bytes)) return too_large();
  if (is_done()) state_ = State::kHeadDone;
}

void RequestParser::Implementation::fail(const error_code& ec) {
  if (ec == http::error::header_limit) return too_long_head();
  if (ec == http::error::body_limit) return too_large();
  refuse(400, fmt::format("the request is no HTTP/1.1: {}", ec.message()));
}

RequestParser::RequestParser(const RequestLimits& limits)
    : implementation_(std::make_unique<Implementation>(limits)) {}

RequestParser::~RequestParser() = default;

size_t RequestParser::take_in(std::string_view bytes) {
  if (implementation_->state_ == State::kHeadDone) {
    implementation_->state_ = implementation_->is_done() ? State::kDone : State::kBody;
  }
  return implementation_->take_in(bytes);
}

RequestParser::State RequestParser::state() const {
  return implementation_->state_;
}

int RequestParser::status() const {
  return implementation_->status_;
}

const std::string& RequestParser::problem() const {
  return implementation_->problem_;
}

HttpRequest& RequestParser::request() {
  return implementation_->request_;
}

bool RequestParser::keep_alive() const {
  return implementation_->is_header_done() && implementation_->keep_alive();
}

bool RequestParser::speaks_1_1() const {
  return implementation_->version_ == 11;
}

bool RequestParser::expects_continue() const {
  return speaks_1_1() && has_body() && !implementation_->request_.header("expect").empty();
}

bool RequestParser::has_body() const {
  return implementation_->is_header_done() && !implementation_->is_done();
}

}  // namespace verbatim::serve
