#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http.h"
#include "verbatim/serve.h"

namespace verbatim::serve {

/// Decides who may ask: checks keys, and which pages of browsers may read answers.
class Gate {
 public:
  /// Takes the keys, the host and the origins of the options.
  explicit Gate(const ServerOptions& options);

  /// Refuses a request whose head has arrived with 401 or 403, answers a browser's question before a request
  /// to another origin, or lets the request pass with nothing.
  std::optional<HttpResponse> screen(const HttpRequest& request) const;
  /// Adds the headers by which a browser lets a page of another origin read an answer.
  void decorate(const HttpRequest& request, HttpResponse& response) const;

 private:
  bool allowed_origin(std::string_view origin) const;
  bool key_matches(std::string_view key) const;
  bool has_key(const HttpRequest& request) const;
  std::optional<HttpResponse> screen_browser(const HttpRequest& request) const;

  std::vector<std::string> key_digests_;
  std::vector<std::string> origins_;
  std::string own_host_;      ///< as it was given to listen on
  bool guards_host_ = false;  ///< only names of this machine are taken for its own
};

/// Whether a path is answered without a key: /health and the page's own files.
bool is_open_path(std::string_view path);

}  // namespace verbatim::serve
