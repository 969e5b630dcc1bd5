#pragma once

#include <string>
#include <string_view>

namespace verbatim::serve {

/// The name of a request: the client's own if it can be shown in a log, else a new one, "req_" and 24
/// hexadecimal digits that nobody can guess.
std::string request_id(std::string_view from_client);

}  // namespace verbatim::serve
