#include "serve/gate.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>

#include "serve/errors.h"
#include "serve/page.h"
#include "serve/target.h"

namespace verbatim::serve {

namespace {

constexpr std::string_view kAllowedMethods = "GET, HEAD, POST, DELETE, OPTIONS";
/// What clients in browsers send; whatever else a page asks for is allowed to it as well.
constexpr std::string_view kHeaders =
    "authorization, content-type, x-api-key, x-request-id, anthropic-version, anthropic-beta, "
    "anthropic-dangerous-direct-browser-access, openai-organization, openai-project";

std::string digest_of(std::string_view text) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return {reinterpret_cast<const char*>(digest), sizeof digest};
}

HttpResponse refusal(const HttpRequest& request, int status, const std::string& message,
                     const std::string& code = {}) {
  return error_response(dialect_of(request.path), HttpError(status, message, {}, code), request.id);
}

/// The key that a request shows: the word behind "Bearer " in any case, or the header of Anthropic's clients.
std::string_view shown_key(const HttpRequest& request) {
  constexpr std::string_view kBearer = "bearer ";
  const std::string_view authorization = request.header("authorization");
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  const bool bearer = authorization.size() > kBearer.size() &&
                      std::equal(kBearer.begin(), kBearer.end(), authorization.begin(),
                                 [&](char a, char b) { return a == lower(b); });
  if (!bearer) return request.header("x-api-key");
  const size_t begin = authorization.find_first_not_of(' ', kBearer.size());
  return begin == std::string_view::npos ? std::string_view() : authorization.substr(begin);
}

/// Names of headers with commas between, and nothing that could end the header they are written into.
bool is_list_of_names(std::string_view text) {
  return text.size() <= 4096 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                  c == '_' || c == ',' || c == ' ';
         });
}

}  // namespace

bool is_open_path(std::string_view path) {
  return path == "/health" || page_file(path) != nullptr;
}

Gate::Gate(const ServerOptions& options) : origins_(options.cors_origins) {
  for (const std::string& key : options.api_keys) key_digests_.push_back(digest_of(key));
  const bool bare_v6 = options.host.find(':') != std::string::npos && !options.host.starts_with('[');
  own_host_ = host_of(bare_v6 ? "[" + options.host + "]" : options.host);
  guards_host_ = key_digests_.empty() && (is_loopback(own_host_) || own_host_.starts_with("127."));
}

bool Gate::allowed_origin(std::string_view origin) const {
  return std::any_of(origins_.begin(), origins_.end(),
                     [&](const std::string& each) { return each == "*" || each == origin; });
}

bool Gate::key_matches(std::string_view key) const {
  // All keys are compared, by digests of one length, so that the time tells nothing.
  const std::string digest = digest_of(key);
  int matches = 0;
  for (const std::string& each : key_digests_) {
    matches |= CRYPTO_memcmp(each.data(), digest.data(), digest.size()) == 0 ? 1 : 0;
  }
  return matches != 0;
}

bool Gate::has_key(const HttpRequest& request) const {
  return key_matches(shown_key(request)) || key_matches(request.header("x-api-key"));
}

std::optional<HttpResponse> Gate::screen_browser(const HttpRequest& request) const {
  const std::string_view host = request.header("host");
  if (guards_host_ && !host.empty()) {
    const std::string name = host_of(host);
    if (!is_loopback(name) && name != own_host_) {
      return refusal(request, 403,
                     "this server has no keys and answers only requests for localhost; start it with "
                     "--api-key-file to use it under another name");
    }
  }
  const std::string_view origin = request.header("origin");
  if (key_digests_.empty() && !origin.empty() && !same_origin(origin, host) && !allowed_origin(origin)) {
    return refusal(request, 403,
                   "pages of this origin may not use the server; start it with --cors-origin to allow them");
  }
  return std::nullopt;
}

std::optional<HttpResponse> Gate::screen(const HttpRequest& request) const {
  if (auto refused = screen_browser(request)) return refused;
  const std::string_view origin = request.header("origin");
  const bool asks_before =
      request.method == "OPTIONS" && !request.header("access-control-request-method").empty();
  if (asks_before && !origin.empty() && allowed_origin(origin)) {
    HttpResponse response{.status = 204};
    std::string headers(kHeaders);
    const std::string_view wanted = request.header("access-control-request-headers");
    if (!wanted.empty() && is_list_of_names(wanted)) headers.append(", ").append(wanted);
    response.headers = {{"Access-Control-Allow-Methods", std::string(kAllowedMethods)},
                        {"Access-Control-Allow-Headers", headers},
                        {"Access-Control-Max-Age", "600"}};
    return response;
  }
  if (key_digests_.empty() || is_open_path(request.path) || has_key(request)) return std::nullopt;
  const bool none = shown_key(request).empty();
  HttpResponse response = refusal(request, 401,
                                  none ? "this server wants a key: send it as `Authorization: Bearer KEY` or "
                                         "`x-api-key: KEY`"
                                       : "the key is none of this server's",
                                  none ? "" : "invalid_api_key");
  response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

void Gate::decorate(const HttpRequest& request, HttpResponse& response) const {
  if (origins_.empty()) return;
  response.headers.emplace_back("Vary", "Origin");
  const std::string_view origin = request.header("origin");
  if (origin.empty() || !allowed_origin(origin)) return;
  response.headers.emplace_back("Access-Control-Allow-Origin", std::string(origin));
  response.headers.emplace_back("Access-Control-Expose-Headers", "x-request-id, request-id, retry-after");
}

}  // namespace verbatim::serve
