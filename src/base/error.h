#pragma once

#include <fmt/format.h>

#include <utility>

#include "verbatim/error.h"

namespace verbatim {

/// Throws an Error of the given kind with a formatted message.
template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

/// Throws an ErrorKind::kBadInput error: the usual case in loaders and parsers.
template <typename... Args>
[[noreturn]] void bad_input(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorKind::kBadInput, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace verbatim
