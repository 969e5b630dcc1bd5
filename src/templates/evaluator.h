#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "templates/syntax.h"
#include "templates/traced_text.h"

namespace verbatim::jinja {

/// A variable that holds a text of the template's own, such as the spelling of a special token.
using OwnText = std::pair<std::string, std::string>;

/// Renders a template. `variables` is a JSON object, whose entries of the names in `own` are overridden.
/// `now` is what strftime_now() shows. Throws Error(kBadInput) with the line and the reason, or with what the
/// template raised.
TracedText render(const Template& source, std::string_view variables, const std::vector<OwnText>& own,
                  std::time_t now);

}  // namespace verbatim::jinja
