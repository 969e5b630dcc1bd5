#pragma once

#include <string_view>

#include "templates/syntax.h"

namespace verbatim::jinja {

/// Parses a template. Throws Error(kBadInput) with the line for what is none, is too long or too deep, or
/// uses what the interpreter does not know.
Template parse(std::string_view source);

}  // namespace verbatim::jinja
