#include "serve/fields.h"

#include <cmath>

namespace verbatim::serve {

namespace {

bool is_integer(const Json& value) {
  if (value.is_number_integer()) return true;
  return value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>() &&
         std::abs(value.get<double>()) < 9e18;
}

bool all_texts(const Json& list) {
  return std::all_of(list.begin(), list.end(), [](const Json& each) { return each.is_string(); });
}

bool fits(const Field& field, const Json& value) {
  switch (field.type) {
    case FieldType::kBoolean:
      return value.is_boolean();
    case FieldType::kInteger:
      return is_integer(value);
    case FieldType::kNumber:
      return value.is_number();
    case FieldType::kText:
      return value.is_string();
    case FieldType::kTextOrTexts:
      return value.is_string() || (value.is_array() && all_texts(value));
    case FieldType::kTextOrList:
      return value.is_string() || value.is_array();
    case FieldType::kTextOrObject:
      return value.is_string() || value.is_object();
    case FieldType::kBooleanOrInteger:
      return value.is_boolean() || is_integer(value);
    case FieldType::kList:
      return value.is_array();
    case FieldType::kObject:
      return value.is_object();
    case FieldType::kAny:
      return true;
  }
  return false;
}

std::string bounds(const Field& field) {
  constexpr double kUnbounded = 1e17;
  const bool least = field.least > -kUnbounded;
  const bool most = field.most < kUnbounded;
  if (least && most) return fmt::format(" from {} to {}", field.least, field.most);
  if (least) return fmt::format(" of at least {}", field.least);
  if (most) return fmt::format(" of at most {}", field.most);
  return {};
}

std::string_view type_name(const Json& value) {
  if (value.is_boolean()) return "a boolean";
  if (value.is_number()) return "a number";
  if (value.is_string()) return "a string";
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  return "null";
}

/// Whether a value is one of those that a kOnly field takes.
bool accepted(const Field& field, const Json& value) {
  const std::string text = dump(value);
  const std::string_view all = field.accepted;
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = std::min(all.find(' ', begin), all.size());
    if (all.substr(begin, end - begin) == text) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

std::string describe(const Field& field) {
  switch (field.type) {
    case FieldType::kBoolean:
      return "true or false";
    case FieldType::kInteger:
      return "an integer" + bounds(field);
    case FieldType::kNumber:
      return "a number" + bounds(field);
    case FieldType::kText:
      return "a string";
    case FieldType::kTextOrTexts:
      return "a string or a list of strings";
    case FieldType::kTextOrList:
      return "a string or a list";
    case FieldType::kTextOrObject:
      return "a string or an object";
    case FieldType::kBooleanOrInteger:
      return "true, false or an integer" + bounds(field);
    case FieldType::kList:
      return "a list";
    case FieldType::kObject:
      return "an object";
    case FieldType::kAny:
      return "any value";
  }
  return {};
}

Fields::Fields(const Json& object, FieldTable table, std::string path)
    : object_(&object), path_(std::move(path)) {
  if (!object.is_object()) {
    const std::string where = path_.empty() ? "the request's JSON" : path_;
    throw HttpError(400, fmt::format("{} must be an object, not {}", where, type_name(object)), path_);
  }
  for (const auto& item : object.items()) {
    const std::string& name = item.key();
    const Json& value = item.value();
    const auto found =
        std::find_if(table.begin(), table.end(), [&](const Field& each) { return each.name == name; });
    if (found == table.end()) refuse(name, "is not a field that this server knows", "unknown_parameter");
    if (value.is_null()) continue;
    const Field& field = *found;
    if (field.use == FieldUse::kRefused) {
      refuse(name, fmt::format("is not supported: {}", field.note), "unsupported_parameter");
    }
    if (!fits(field, value)) {
      refuse(name, fmt::format("must be {}, not {}", describe(field), type_name(value)), "invalid_type");
    }
    if (value.is_number() && !(value.get<double>() >= field.least && value.get<double>() <= field.most)) {
      refuse(name, fmt::format("must be {}, not {}", describe(field), shown(dump(value), 40)),
             "invalid_value");
    }
    if (field.use == FieldUse::kOnly && !accepted(field, value)) {
      refuse(name, fmt::format("is supported only as one of: {}", field.accepted), "unsupported_value");
    }
  }
  for (const Field& field : table) {
    if (field.required && !has(field.name)) refuse(field.name, "is missing", "missing_required_parameter");
  }
}

const Json* Fields::find(std::string_view name) const {
  const auto found = object_->find(std::string(name));
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

std::optional<bool> Fields::boolean(std::string_view name) const {
  const Json* const value = find(name);
  return value == nullptr ? std::nullopt : std::optional(value->get<bool>());
}

std::optional<int64_t> Fields::integer(std::string_view name) const {
  const Json* const value = find(name);
  return value == nullptr ? std::nullopt : std::optional(value->get<int64_t>());
}

std::optional<double> Fields::number(std::string_view name) const {
  const Json* const value = find(name);
  return value == nullptr ? std::nullopt : std::optional(value->get<double>());
}

std::optional<std::string> Fields::text(std::string_view name) const {
  const Json* const value = find(name);
  return value == nullptr ? std::nullopt : std::optional(value->get<std::string>());
}

std::vector<std::string> Fields::texts(std::string_view name) const {
  const Json* const value = find(name);
  if (value == nullptr) return {};
  if (value->is_string()) return {value->get<std::string>()};
  return value->get<std::vector<std::string>>();
}

std::optional<Fields> Fields::object(std::string_view name, FieldTable table) const {
  const Json* const value = find(name);
  return value == nullptr ? std::nullopt : std::optional(Fields(*value, table, path_of(name)));
}

std::vector<Fields> Fields::objects(std::string_view name, FieldTable table) const {
  const Json* const list = find(name);
  std::vector<Fields> result;
  if (list == nullptr) return result;
  for (size_t i = 0; i < list->size(); ++i) {
    result.emplace_back((*list)[i], table, fmt::format("{}[{}]", path_of(name), i));
  }
  return result;
}

std::string Fields::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

void Fields::refuse(std::string_view name, const std::string& message, const std::string& code) const {
  const std::string path = shown(path_of(name), 200);
  throw HttpError(400, fmt::format("{} {}", path, message), path, code);
}

}  // namespace verbatim::serve
