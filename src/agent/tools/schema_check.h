#pragma once

#include <optional>
#include <string>

#include "agent/json.h"
#include "agent/plan/term.h"

namespace verbatim::agent {

/// Says what about an argument breaks its JSON schema, naming the place ("`a[2]` should be a number, and is a
/// string"); nothing if all is well. What a reference will stand for is not known yet, so it passes; a string
/// with references is a string of unknown length.
///
/// Known are `type`, `enum`, `const`, `properties`, `required`, `additionalProperties`, `items`, the least
/// and most of numbers, strings and lists, `anyOf`, `oneOf` (as `anyOf`), `allOf` and `$ref` within the
/// schema. Other keywords are left to the tool itself, and so is whatever remains when the check has taken
/// some hundred thousand steps, which schemas that lead back to themselves can ask for without end.
std::optional<std::string> schema_fault(const Term& term, const Json& schema, const std::string& name);

/// The value of arguments as a tool's schema wants it: where it asks for a string, any other value becomes
/// its text, and where it asks for a number, an integer or a truth value, a string that spells one becomes
/// it. References and combinations within the schema are followed; where one of several schemas will do, a
/// value that fits one stays as it is. Results of tools come as text, which is seldom what the next tool
/// takes.
Json converted(Json value, const Json& schema);

}  // namespace verbatim::agent
