// The way of a request from a connection's bytes to the server: read in pieces of a size that the first byte
// says, it must be read as it is when whole, and what is let through must be what was promised of it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "serve/gate.h"
#include "serve/target.h"
#include "serve/transport/answer_head.h"
#include "serve/transport/request_parser.h"

namespace {

using namespace verbatim;
using serve::RequestParser;

constexpr serve::RequestLimits kLimits{.head_bytes = 2048, .headers = 20, .body_bytes = 512};

void require(bool condition) {
  if (!condition) std::abort();
}

/// Reads what arrives in pieces, as a connection does.
void read(RequestParser& parser, std::string_view bytes, size_t piece) {
  std::string arrived;
  while (parser.state() != RequestParser::State::kDone && parser.state() != RequestParser::State::kBad) {
    const std::string_view next = bytes.substr(0, piece);
    bytes.remove_prefix(next.size());
    arrived += next;
    const auto before = parser.state();
    arrived.erase(0, parser.take_in(arrived));
    if (next.empty() && parser.state() == before) return;
    require(parser.request().body.size() <= static_cast<size_t>(kLimits.body_bytes));
    require(parser.request().headers.size() <= kLimits.headers);
  }
}

void screen(const serve::Gate& gate, const serve::HttpRequest& request) {
  if (auto response = gate.screen(request)) {
    gate.decorate(request, *response);
    const std::string head = serve::answer_head(*response, request, serve::BodyEnd::kLength, 0, true);
    require(head.find("\r\n\r\n") == head.size() - 4);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t piece = data[0] % 64 + 1;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  RequestParser whole(kLimits);
  read(whole, bytes, size);
  RequestParser pieces(kLimits);
  read(pieces, bytes, piece);
  // A chunk's head that is too long is noticed only before its end is there.
  require(whole.state() != RequestParser::State::kDone || pieces.state() == RequestParser::State::kDone ||
          pieces.status() == 400);
  if (whole.state() == RequestParser::State::kBad) {
    require(whole.status() >= 400 && whole.status() < 600 && !whole.problem().empty());
  }
  if (whole.state() != RequestParser::State::kDone) return 0;
  const serve::HttpRequest& request = whole.request();
  if (pieces.state() == RequestParser::State::kDone) {
    require(request.path == pieces.request().path && request.body == pieces.request().body);
    require(request.headers == pieces.request().headers);
  }
  require(request.path == "*" || request.path.starts_with('/'));
  require(request.path.find("//") == std::string::npos && request.path.find("/../") == std::string::npos);
  static const serve::Gate open{ServerOptions{}};
  static const serve::Gate closed = [] {
    ServerOptions options;
    options.api_keys = {"key"};
    options.cors_origins = {"*"};
    return serve::Gate(options);
  }();
  screen(open, request);
  screen(closed, request);
  return 0;
}
