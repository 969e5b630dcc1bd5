#include "structure/schema_merge.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/printable.h"

namespace verbatim {

namespace {

constexpr std::string_view kTypes[] = {"null", "boolean", "object", "array", "number", "integer", "string"};

bool has_type(const std::vector<std::string>& types, std::string_view type) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

/// Whether the keyword is a limit from below (1), from above (-1) or none (0).
int limit_direction(std::string_view keyword) {
  for (const char* least : {"minimum", "exclusiveMinimum", "minLength", "minItems"}) {
    if (keyword == least) return 1;
  }
  for (const char* most : {"maximum", "exclusiveMaximum", "maxLength", "maxItems"}) {
    if (keyword == most) return -1;
  }
  return 0;
}

OrderedJson common_types(const OrderedJson& a, const OrderedJson& b, const std::string& place) {
  const std::vector<std::string> first = schema_types({{"type", a}}, place);
  const std::vector<std::string> second = schema_types({{"type", b}}, place);
  OrderedJson types = OrderedJson::array();
  for (const std::string& type : first) {
    const bool integer = type == "integer" && has_type(second, "number");
    if (has_type(second, type) || integer) types.push_back(type);
    if (type == "number" && has_type(second, "integer")) types.push_back("integer");
  }
  return types;
}

OrderedJson common_values(const OrderedJson& a, const OrderedJson& b) {
  const auto less = [](const OrderedJson* first, const OrderedJson* second) { return *first < *second; };
  std::set<const OrderedJson*, decltype(less)> others(less);
  for (const OrderedJson& value : b) others.insert(&value);
  OrderedJson values = OrderedJson::array();
  for (const OrderedJson& value : a) {
    if (others.contains(&value)) values.push_back(value);
  }
  return values;
}

/// A schema for what both allow. Many of them in a row make one list, not one in the other.
OrderedJson both(const OrderedJson& a, const OrderedJson& b) {
  if (a.is_object() && a.size() == 1 && a.contains("allOf") && a["allOf"].is_array()) {
    OrderedJson more = a;
    more["allOf"].push_back(b);
    return more;
  }
  OrderedJson all = OrderedJson::object();
  all["allOf"] = OrderedJson::array();
  all["allOf"].push_back(a);
  all["allOf"].push_back(b);
  return all;
}

OrderedJson merged_properties(const OrderedJson& a, const OrderedJson& b) {
  OrderedJson properties = a;
  for (const auto& [name, schema] : b.items()) {
    const auto known = properties.find(name);
    if (known == properties.end()) {
      properties[name] = schema;
    } else if (*known != schema) {
      *known = both(*known, schema);
    }
  }
  return properties;
}

/// Holds the properties that another schema does not name to its additionalProperties, which may allow none.
void hold_to_additional(OrderedJson& properties, const OrderedJson& other) {
  const auto rule = other.find("additionalProperties");
  if (rule == other.end() || (rule->is_boolean() && rule->get<bool>())) return;
  const auto known = other.find("properties");
  OrderedJson kept = OrderedJson::object();
  for (const auto& [name, schema] : properties.items()) {
    if (known != other.end() && known->contains(name)) {
      kept[name] = schema;
    } else if (!rule->is_boolean()) {
      kept[name] = both(schema, *rule);
    }
  }
  properties = std::move(kept);
}

/// Refuses two schemas of which one says something about all items and the other about some of them by their
/// place.
void check_items(const OrderedJson& all, const OrderedJson& placed, const std::string& place) {
  const auto items = all.find("items");
  const auto prefix = placed.find("prefixItems");
  if (items == all.end() || prefix == placed.end()) return;
  if (items->is_boolean() && items->get<bool>()) return;
  const auto own = all.find("prefixItems");
  if (prefix->size() > (own == all.end() ? 0 : own->size())) {
    bad_input("{}: items and the prefixItems of another schema that holds too cannot be made one", place);
  }
}

}  // namespace

std::vector<std::string> schema_types(const OrderedJson& schema, const std::string& place) {
  const auto type = schema.find("type");
  if (type == schema.end()) return {"null", "boolean", "object", "array", "number", "string"};
  std::vector<std::string> types;
  const auto add = [&](const OrderedJson& name) {
    const auto text = name.is_string() ? name.get<std::string>() : name.dump();
    if (!name.is_string() || std::find(std::begin(kTypes), std::end(kTypes), text) == std::end(kTypes)) {
      bad_input("{}: {} is not a type", place, printable(text));
    }
    if (!has_type(types, text)) types.push_back(text);
  };
  if (type->is_array()) {
    for (const OrderedJson& name : *type) add(name);
    if (types.empty()) bad_input("{}: the list of types is empty", place);
  } else {
    add(*type);
  }
  if (has_type(types, "number")) std::erase(types, "integer");
  return types;
}

bool is_annotation(std::string_view keyword) {
  constexpr std::string_view kAnnotations[] = {
      "title", "description", "default",    "examples", "$comment",  "$schema", "$id",
      "$defs", "definitions", "deprecated", "readOnly", "writeOnly", "example",
  };
  return std::find(std::begin(kAnnotations), std::end(kAnnotations), keyword) != std::end(kAnnotations);
}

size_t values_in(const OrderedJson& json) {
  size_t size = 1;
  if (json.is_structured()) {
    for (const OrderedJson& part : json) size += values_in(part);
  }
  return size;
}

size_t merge_work(const OrderedJson& a, const OrderedJson& b) {
  constexpr size_t kComparedInTheTimeOfACopy = 8;
  if (!a.is_object() || !b.is_object()) return values_in(a) + values_in(b);
  size_t work = a.size() * b.size();
  for (const char* const keyword : {"properties", "required"}) {
    const auto size_in = [&](const OrderedJson& schema) {
      const auto found = schema.find(keyword);
      return found == schema.end() ? 0 : found->size();
    };
    const size_t names = size_in(a) + size_in(b);
    work += names * names;
  }
  return values_in(a) + values_in(b) + work / kComparedInTheTimeOfACopy;
}

OrderedJson merged_schemas(const OrderedJson& a, const OrderedJson& b, const std::string& place) {
  if (a.is_boolean() || b.is_boolean()) {
    const bool first = !a.is_boolean() || a.get<bool>();
    const bool second = !b.is_boolean() || b.get<bool>();
    if (!first || !second) return false;
    return a.is_boolean() ? b : a;
  }
  if (!a.is_object() || !b.is_object()) bad_input("{}: a schema should be an object, true or false", place);
  check_items(a, b, place);
  check_items(b, a, place);
  OrderedJson result = a;
  for (const auto& [keyword, value] : b.items()) {
    const auto known = result.find(keyword);
    if (known == result.end()) {
      result[keyword] = value;
      continue;
    }
    if (*known == value || is_annotation(keyword)) continue;
    const int direction = limit_direction(keyword);
    if (direction != 0 && known->is_number() && value.is_number()) {
      const bool tighter = direction > 0 ? value > *known : value < *known;
      if (tighter) *known = value;
    } else if (keyword == "type") {
      *known = common_types(*known, value, place);
      if (known->empty()) return false;
    } else if (keyword == "enum" && known->is_array() && value.is_array()) {
      *known = common_values(*known, value);
      if (known->empty()) return false;
    } else if (keyword == "properties" && known->is_object() && value.is_object()) {
      *known = merged_properties(*known, value);
    } else if (keyword == "required" && known->is_array() && value.is_array()) {
      for (const OrderedJson& name : value) {
        if (std::find(known->begin(), known->end(), name) == known->end()) known->push_back(name);
      }
    } else if (keyword == "additionalProperties" || keyword == "items") {
      *known = both(*known, value);
      if ((a[keyword].is_boolean() && !a[keyword].get<bool>()) ||
          (value.is_boolean() && !value.get<bool>())) {
        *known = false;
      }
    } else if (keyword == "allOf" && known->is_array() && value.is_array()) {
      known->insert(known->end(), value.begin(), value.end());
    } else if (keyword == "anyOf" || keyword == "oneOf" || keyword == "$ref") {
      // Both must hold: the second one goes into a list of further schemas.
      OrderedJson further = {{keyword, value}};
      if (!result.contains("allOf")) result["allOf"] = OrderedJson::array();
      result["allOf"].push_back(std::move(further));
    } else {
      bad_input("{}: two {} that both hold cannot be made one", place, printable(keyword));
    }
  }
  if (result.contains("properties") && result["properties"].is_object()) {
    hold_to_additional(result["properties"], a);
    hold_to_additional(result["properties"], b);
  }
  return result;
}

}  // namespace verbatim
