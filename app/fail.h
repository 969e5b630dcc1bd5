#pragma once

#include <fmt/format.h>

#include <utility>

#include "verbatim/error.h"

namespace verbatim::app {

/// Throws an Error of the given kind with a formatted message.
template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

/// Throws an ErrorKind::kBadInput error: a file or a text that the user named is wrong.
template <typename... Args>
[[noreturn]] void bad_input(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::kBadInput, format, std::forward<Args>(args)...);
}

}  // namespace verbatim::app
