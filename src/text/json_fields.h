#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace verbatim {

using Json = nlohmann::json;

/// Parses a JSON text. Throws Error(kBadInput), naming `where` and the offset, if it is malformed, and unless
/// it is an object.
Json parse_json_object(std::string_view text, const std::string& where);

// Typed look-ups in untrusted JSON. A field that is null counts as absent. Each throws Error(kBadInput),
// naming `where` and the field, when the value is of another type.

/// The field of an object; nullptr if it is absent, or if `object` is not an object.
const Json* find_field(const Json& object, const char* name);
std::optional<std::string> string_field(const Json& object, const char* name, const std::string& where);
std::optional<bool> bool_field(const Json& object, const char* name, const std::string& where);

/// The field of an object, which must be there.
const Json& require_field(const Json& object, const char* name, const std::string& where);
std::string require_string(const Json& object, const char* name, const std::string& where);

/// A value as a token id, which must be an integer from 0 to 2^31 - 1.
int64_t require_token_id(const Json& value, const std::string& where);

}  // namespace verbatim
