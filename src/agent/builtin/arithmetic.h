#pragma once

#include <string_view>

namespace verbatim::agent {

/// The value of an arithmetic expression: numbers, `+ - * / % ^` (or `**`), parentheses, the constants pi and
/// e, and the functions abs, sqrt, cbrt, exp, ln, log10, log2, sin, cos, tan, floor, ceil, round, min, max,
/// sum and mean. Nothing else runs, and the time is linear in the text, which may have 10,000 bytes. Throws
/// Error(kBadInput), naming the place, for what is no expression and for a value that is no finite number.
double arithmetic(std::string_view expression);

}  // namespace verbatim::agent
