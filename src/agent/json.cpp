#include "agent/json.h"

#include <fmt/format.h>

#include <cstdint>
#include <vector>

namespace verbatim::agent {

namespace {

/// The bytes of the valid character at `at`, or 0.
size_t character_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t offset) -> unsigned {
    return at + offset < text.size() ? static_cast<unsigned char>(text[at + offset]) : 0U;
  };
  const auto follows = [&](size_t offset) { return (byte(offset) & 0xC0U) == 0x80U; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return follows(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool overlong = lead == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = lead == 0xED && byte(1) > 0x9F;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool overlong = lead == 0xF0 && byte(1) < 0x90;
    const bool beyond = lead == 0xF4 && byte(1) > 0x8F;
    return follows(1) && follows(2) && follows(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

/// Why a text must not be parsed: it holds an object with too many members, or lies too deep. Empty if it
/// may. The parser's own watch cannot say so, because with one it looks through a list for each of its parts.
std::string excess(std::string_view text) {
  std::vector<size_t> open;  // the members of each object that is open, and 0 for lists
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      open.push_back(0);
      if (static_cast<int>(open.size()) > kDeepestJson)
        return fmt::format("the JSON lies deeper than {}", kDeepestJson);
    } else if ((c == '}' || c == ']') && !open.empty()) {
      open.pop_back();
    } else if (c == ':' && !open.empty() && ++open.back() > kMostJsonMembers) {
      return fmt::format("an object of the JSON has more than {} members", kMostJsonMembers);
    }
  }
  return {};
}

}  // namespace

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string as_text(const Json& json) {
  return json.is_string() ? json.get_ref<const std::string&>() : dump(json);
}

std::optional<Json> parse_json(std::string_view text, std::string* why) {
  if (find_bad_utf8(text) != std::string_view::npos) return std::nullopt;
  if (std::string fault = excess(text); !fault.empty()) {
    if (why) *why = std::move(fault);
    return std::nullopt;
  }
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return std::nullopt;
  return json;
}

size_t find_bad_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = character_length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t length = character_length(text, at);
    valid += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(at, length);
    at += std::max<size_t>(length, 1);
  }
  return valid;
}

std::string_view first_bytes(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  return text.substr(0, most);
}

}  // namespace verbatim::agent
