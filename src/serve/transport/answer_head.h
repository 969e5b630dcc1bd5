#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "serve/http.h"

namespace verbatim::serve {

/// How the end of an answer's body is told.
enum class BodyEnd { kLength, kChunks, kClose };

/// The words of a status: "Not Found".
std::string_view status_words(int status);

/// The first line and the headers of an answer, with the empty line. `length` is written for kLength. Line
/// breaks in headers, which would begin others, become spaces.
std::string answer_head(const HttpResponse& response, const HttpRequest& request, BodyEnd end, int64_t length,
                        bool keep_alive);

/// A piece of a body that is sent in chunks.
std::string body_chunk(std::string_view bytes);

}  // namespace verbatim::serve
