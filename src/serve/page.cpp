#include "serve/page.h"

#include <algorithm>

#include "serve/errors.h"

namespace verbatim::serve {

const PageFile* page_file(std::string_view path) {
  const auto files = page_files();
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const PageFile& file) { return file.path == path; });
  return found == files.end() ? nullptr : &*found;
}

HttpResponse page_response(const PageFile& file, const HttpRequest& request) {
  if (request.method != "GET" && request.method != "HEAD") {
    HttpResponse response =
        error_response(Dialect::kOpenAi, HttpError(405, "a page's file is only to be read"));
    response.headers.emplace_back("Allow", "GET, HEAD");
    return response;
  }
  HttpResponse response{.content_type = std::string(file.content_type)};
  // Nothing but the page's own files and the server that it came from, and no page around it.
  response.headers = {{"ETag", std::string(file.etag)},
                      {"Cache-Control", "no-cache"},
                      {"Content-Security-Policy",
                       "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
                       "form-action 'none'; frame-ancestors 'none'"},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"}};
  if (request.header("if-none-match").find(file.etag) != std::string_view::npos) {
    response.status = 304;
  } else {
    response.body = file.content;
  }
  return response;
}

}  // namespace verbatim::serve
