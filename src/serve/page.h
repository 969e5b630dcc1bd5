#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "serve/http.h"

namespace verbatim::serve {

/// A file of the page, compiled into the program.
struct PageFile {
  std::string_view path;  ///< under which it is asked for: "/style.css"; "/" for index.html
  std::string_view content_type;
  std::string_view etag;  ///< changes with the content
  std::string_view content;
};

/// All files of the page.
std::span<const PageFile> page_files();
/// The file of a path, or null.
const PageFile* page_file(std::string_view path);
/// The answer to a GET of a file: the file, or 304 if the client has it; 405 for other methods.
HttpResponse page_response(const PageFile& file, const HttpRequest& request);

}  // namespace verbatim::serve
