#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace verbatim::serve {

/// A fresh name that nobody can guess: the prefix ("chatcmpl-") and 24 hexadecimal digits.
std::string new_id(std::string_view prefix);

/// Seconds since 1970.
int64_t unix_time();

/// What OpenAI calls the fingerprint of the system: the server's name and version.
std::string system_fingerprint();

}  // namespace verbatim::serve
