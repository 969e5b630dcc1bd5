#include "serve/target.h"

#include <algorithm>

namespace verbatim::serve {

namespace {

constexpr size_t kLongestRequestId = 128;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return result;
}

/// Whether a segment is "." or "..", where a dot may be written as %2e.
bool is_dots(std::string_view segment) {
  int dots = 0;
  while (!segment.empty()) {
    const bool encoded = segment.size() >= 3 && lower(segment.substr(0, 3)) == "%2e";
    if (!encoded && segment.front() != '.') return false;
    segment.remove_prefix(encoded ? 3 : 1);
    ++dots;
  }
  return dots == 1 || dots == 2;
}

/// The path with single slashes between its segments and none at its end; nothing if a segment is dots.
std::optional<std::string> normal_path(std::string_view path) {
  std::string normal;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    const std::string_view segment = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (segment.empty()) continue;
    if (is_dots(segment)) return std::nullopt;
    normal.append("/").append(segment);
  }
  return normal.empty() ? "/" : normal;
}

bool is_port(std::string_view text) {
  return text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// An authority in small letters, without the port that its scheme has anyway.
std::string without_default_port(std::string_view authority, std::string_view port) {
  std::string text = lower(authority);
  const std::string ending = ":" + std::string(port);
  if (text.size() > ending.size() && text.ends_with(ending)) text.resize(text.size() - ending.size());
  return text;
}

}  // namespace

std::optional<Target> parse_target(std::string_view text) {
  const bool printable =
      std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f' && c != '\\'; });
  if (text.empty() || !printable) return std::nullopt;
  Target target;
  if (text == "*") {
    target.path = "*";
    return target;
  }
  text = text.substr(0, text.find('#'));
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (lower(text.substr(0, scheme.size())) != scheme) continue;
    text.remove_prefix(scheme.size());
    const size_t end = std::min(text.find_first_of("/?"), text.size());
    target.authority = text.substr(0, end);
    text.remove_prefix(end);
    if (host_of(target.authority).empty()) return std::nullopt;
    break;
  }
  if (target.authority.empty() && !text.starts_with('/')) return std::nullopt;
  const size_t question = text.find('?');
  if (question != std::string_view::npos) target.query = text.substr(question + 1);
  const auto path = normal_path(text.substr(0, question));
  if (!path) return std::nullopt;
  target.path = *path;
  return target;
}

std::string host_of(std::string_view authority) {
  size_t end = 0;
  if (authority.starts_with('[')) {
    end = authority.find(']');
    if (end == std::string_view::npos) return {};
    ++end;
  } else {
    end = std::min(authority.find(':'), authority.size());
  }
  const std::string_view host = authority.substr(0, end);
  const std::string_view port = authority.substr(end);
  if (!port.empty() && (port.front() != ':' || !is_port(port.substr(1)))) return {};
  const bool sane = std::all_of(host.begin(), host.end(), [](char c) {
    return is_letter_or_digit(c) || std::string_view("-._~[]:%").find(c) != std::string_view::npos;
  });
  return sane ? lower(host) : std::string();
}

bool is_loopback(std::string_view host) {
  if (host.ends_with('.')) host.remove_suffix(1);
  return host == "localhost" || host.ends_with(".localhost") || host == "127.0.0.1" || host == "[::1]";
}

bool same_origin(std::string_view origin, std::string_view host) {
  for (const auto& [scheme, port] : {std::pair<std::string_view, std::string_view>{"http://", "80"},
                                     std::pair<std::string_view, std::string_view>{"https://", "443"}}) {
    if (!origin.starts_with(scheme)) continue;
    const std::string_view authority = origin.substr(scheme.size());
    return !authority.empty() && without_default_port(authority, port) == without_default_port(host, port);
  }
  return false;
}

bool is_request_id(std::string_view text) {
  return !text.empty() && text.size() <= kLongestRequestId &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return is_letter_or_digit(c) || std::string_view("._:-").find(c) != std::string_view::npos;
         });
}

}  // namespace verbatim::serve
