#pragma once

#include <string_view>

namespace verbatim::jinja {

/// The text of the built-in template of a chat format. Throws Error(kUsage), listing the names, if there is
/// none.
std::string_view built_in_template(std::string_view format);

}  // namespace verbatim::jinja
