#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace verbatim::serve {

/// What a request line asks for, in parts.
struct Target {
  std::string path;       ///< begins with a slash, or is "*"; without doubled slashes and without a last one
  std::string query;      ///< what stood after the first question mark
  std::string authority;  ///< of a target that names its host ("http://host/path"), else empty
};

/// Takes the target of a request line apart. Nothing if it is none that an origin server answers: one that
/// does not begin with a slash, that holds bytes outside of printable ASCII, or whose path has a segment "."
/// or "..", percent-encoded or not.
std::optional<Target> parse_target(std::string_view text);

/// A host without its port: "[::1]:8080" and "LocalHost:80" are "[::1]" and "localhost". Empty if the text is
/// no host with or without a port.
std::string host_of(std::string_view authority);

/// Whether a host, as host_of() returns it, names this machine by its loopback address.
bool is_loopback(std::string_view host);

/// Whether the value of an Origin header names the same host and port as the value of a Host header.
bool same_origin(std::string_view origin, std::string_view host);

/// Whether a client's own name for its request can be shown in a log and a header: 1 to 128 letters, digits
/// and characters of "._:-".
bool is_request_id(std::string_view text);

}  // namespace verbatim::serve
