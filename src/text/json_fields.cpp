#include "text/json_fields.h"

#include "base/error.h"

namespace verbatim {

Json parse_json_object(std::string_view text, const std::string& where) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    bad_input("{}: not valid JSON at byte {} of {}", where, error.byte, text.size());
  } catch (const Json::exception&) {
    bad_input("{}: not valid JSON: a number is out of range", where);
  }
  if (!json.is_object())
    bad_input("{}: must hold a JSON object, but holds a JSON {}", where, json.type_name());
  return json;
}

const Json* find_field(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::string> string_field(const Json& object, const char* name, const std::string& where) {
  const Json* field = find_field(object, name);
  if (field == nullptr) return std::nullopt;
  if (!field->is_string()) bad_input("{}: '{}' must be a string", where, name);
  return field->get<std::string>();
}

std::optional<bool> bool_field(const Json& object, const char* name, const std::string& where) {
  const Json* field = find_field(object, name);
  if (field == nullptr) return std::nullopt;
  if (!field->is_boolean()) bad_input("{}: '{}' must be true or false", where, name);
  return field->get<bool>();
}

const Json& require_field(const Json& object, const char* name, const std::string& where) {
  const Json* field = find_field(object, name);
  if (field == nullptr) bad_input("{}: '{}' is missing", where, name);
  return *field;
}

std::string require_string(const Json& object, const char* name, const std::string& where) {
  const auto text = string_field(object, name, where);
  if (!text) bad_input("{}: '{}' is missing", where, name);
  return *text;
}

int64_t require_token_id(const Json& value, const std::string& where) {
  const bool fits = value.is_number_unsigned() && value.get<uint64_t>() <= INT32_MAX;
  if (!fits) bad_input("{}: a token id must be an integer from 0 to {}", where, INT32_MAX);
  return value.get<int64_t>();
}

}  // namespace verbatim
