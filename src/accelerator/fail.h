#pragma once

#include <fmt/format.h>

#include <utility>

#include "verbatim/error.h"

namespace verbatim::accelerator {

/// Throws an ErrorKind::kBadInput error with a formatted message of one line.
template <typename... Args>
[[noreturn]] void bad_input(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorKind::kBadInput, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace verbatim::accelerator
