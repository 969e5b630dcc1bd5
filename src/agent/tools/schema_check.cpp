#include "agent/tools/schema_check.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "verbatim/text.h"

namespace verbatim::agent {

namespace {

constexpr int kMostReferences = 32;  // followed one after the other

using Fault = std::optional<std::string>;

/// The type of a term's value as schemas name it, or nothing if only its result will tell.
std::string type_of(const Term& term) {
  switch (term.kind) {
    case Term::Kind::kReference:
      return {};
    case Term::Kind::kText:
      return "string";
    case Term::Kind::kList:
      return "array";
    case Term::Kind::kObject:
      return "object";
    case Term::Kind::kValue:
      break;
  }
  const Json& value = term.value;
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "boolean";
  if (value.is_number_integer()) return "integer";
  if (value.is_number()) {
    const double number = value.get<double>();
    return number == std::floor(number) ? "integer" : "number";
  }
  return value.is_string() ? "string" : value.is_array() ? "array" : "object";
}

bool is_type(const std::string& type, const Json& wanted) {
  return wanted.is_string() && (wanted == type || (wanted == "number" && type == "integer"));
}

/// The elements of a list or the members of an object as terms.
std::vector<Term> parts_of(const Term& term) {
  if (term.kind != Term::Kind::kValue) return term.parts;
  std::vector<Term> parts;
  for (const Json& part : term.value) parts.push_back(Term::of(part));
  return parts;
}

std::vector<std::string> keys_of(const Term& term) {
  if (term.kind != Term::Kind::kValue) return term.keys;
  std::vector<std::string> keys;
  for (const auto& [key, value] : term.value.items()) keys.push_back(key);
  return keys;
}

std::string with_article(const std::string& type) {
  const bool vowel = !type.empty() && std::string_view("aeiou").find(type.front()) != std::string_view::npos;
  return (vowel ? "an " : "a ") + type;
}

class SchemaCheck {
 public:
  explicit SchemaCheck(const Json& root) : root_(root) {}

  Fault check(const Term& term, const Json& given, const std::string& name, int depth) const {
    const Json* const schema = resolved(given);
    if (!schema || depth > kDeepestJson) return std::nullopt;
    if (schema->is_boolean()) {
      return schema->get<bool>() ? Fault() : fmt::format("`{}` may not be given", name);
    }
    if (!schema->is_object()) return std::nullopt;
    const std::string type = type_of(term);
    if (type.empty()) return std::nullopt;
    if (Fault fault = check_type(type, *schema, name)) return fault;
    if (Fault fault = check_values(term, *schema, name)) return fault;
    if (Fault fault = check_sizes(term, type, *schema, name)) return fault;
    if (type == "array") {
      if (Fault fault = check_items(term, *schema, name, depth)) return fault;
    }
    if (type == "object") {
      if (Fault fault = check_members(term, *schema, name, depth)) return fault;
    }
    return check_combinations(term, *schema, name, depth);
  }

 private:
  /// The schema that a reference within the root leads to; null if there is none.
  const Json* resolved(const Json& schema) const {
    const Json* at = &schema;
    for (int i = 0; i < kMostReferences; ++i) {
      if (!at->is_object() || !at->contains("$ref") || !(*at)["$ref"].is_string()) return at;
      std::string path = (*at)["$ref"].get<std::string>();
      if (!path.starts_with("#")) return nullptr;
      path.erase(0, 1);
      try {
        const Json::json_pointer pointer(path);
        if (!root_.contains(pointer)) return nullptr;
        at = &root_.at(pointer);
      } catch (const Json::exception&) {
        return nullptr;
      }
    }
    return nullptr;
  }

  static Fault check_type(const std::string& type, const Json& schema, const std::string& name) {
    if (!schema.contains("type")) return std::nullopt;
    const Json& wanted = schema["type"];
    if (wanted.is_string() && !is_type(type, wanted)) {
      return fmt::format("`{}` should be {}, and is {}", name, with_article(wanted.get<std::string>()),
                         with_article(type));
    }
    if (!wanted.is_array()) return std::nullopt;
    for (const Json& one : wanted) {
      if (is_type(type, one)) return std::nullopt;
    }
    return fmt::format("`{}` is {}, and its type should be one of {}", name, with_article(type),
                       dump(wanted));
  }

  static Fault check_values(const Term& term, const Json& schema, const std::string& name) {
    if (term.kind != Term::Kind::kValue) return std::nullopt;
    if (schema.contains("const") && term.value != schema["const"]) {
      return fmt::format("`{}` should be {}", name, shown(dump(schema["const"]), kShownBytes));
    }
    if (!schema.contains("enum") || !schema["enum"].is_array()) return std::nullopt;
    for (const Json& one : schema["enum"]) {
      if (term.value == one) return std::nullopt;
    }
    return fmt::format("`{}` should be one of {}, and is {}", name,
                       shown(dump(schema["enum"]), 4 * kShownBytes), shown(dump(term.value), kShownBytes));
  }

  /// A number that a schema has under a key.
  static std::optional<double> limit(const Json& schema, const char* key) {
    if (!schema.contains(key) || !schema[key].is_number()) return std::nullopt;
    return schema[key].get<double>();
  }

  static Fault check_range(double size, const std::string& what, const Json& schema, const char* least,
                           const char* most) {
    if (const auto low = limit(schema, least); low && size < *low) {
      return fmt::format("{} should be at least {}, and is {}", what, *low, size);
    }
    if (const auto high = limit(schema, most); high && size > *high) {
      return fmt::format("{} should be at most {}, and is {}", what, *high, size);
    }
    return std::nullopt;
  }

  static Fault check_sizes(const Term& term, const std::string& type, const Json& schema,
                           const std::string& name) {
    if (type == "array") {
      return check_range(static_cast<double>(parts_of(term).size()), fmt::format("the length of `{}`", name),
                         schema, "minItems", "maxItems");
    }
    if (term.kind != Term::Kind::kValue) return std::nullopt;
    if (term.value.is_string()) {
      double characters = 0;
      for (const char c : term.value.get_ref<const std::string&>()) {
        if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) ++characters;
      }
      return check_range(characters, fmt::format("the length of `{}`", name), schema, "minLength",
                         "maxLength");
    }
    if (!term.value.is_number()) return std::nullopt;
    const double number = term.value.get<double>();
    const std::string what = fmt::format("`{}`", name);
    if (Fault fault = check_range(number, what, schema, "minimum", "maximum")) return fault;
    if (const auto low = limit(schema, "exclusiveMinimum"); low && number <= *low) {
      return fmt::format("{} should be more than {}, and is {}", what, *low, number);
    }
    if (const auto high = limit(schema, "exclusiveMaximum"); high && number >= *high) {
      return fmt::format("{} should be less than {}, and is {}", what, *high, number);
    }
    return std::nullopt;
  }

  Fault check_items(const Term& term, const Json& schema, const std::string& name, int depth) const {
    if (!schema.contains("items") || schema["items"].is_array()) return std::nullopt;
    const std::vector<Term> parts = parts_of(term);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (Fault fault = check(parts[i], schema["items"], fmt::format("{}[{}]", name, i), depth + 1))
        return fault;
    }
    return std::nullopt;
  }

  Fault check_members(const Term& term, const Json& schema, const std::string& name, int depth) const {
    const std::vector<Term> parts = parts_of(term);
    const std::vector<std::string> keys = keys_of(term);
    const std::string prefix = name.empty() ? "" : name + ".";
    if (schema.contains("required") && schema["required"].is_array()) {
      for (const Json& key : schema["required"]) {
        if (!key.is_string()) continue;
        if (std::find(keys.begin(), keys.end(), key.get<std::string>()) == keys.end()) {
          return fmt::format("`{}{}` is missing", prefix, key.get<std::string>());
        }
      }
    }
    const bool has_properties = schema.contains("properties") && schema["properties"].is_object();
    for (size_t i = 0; i < keys.size(); ++i) {
      const std::string inner = prefix + shown(keys[i], kShownBytes);
      if (has_properties && schema["properties"].contains(keys[i])) {
        if (Fault fault = check(parts[i], schema["properties"][keys[i]], inner, depth + 1)) return fault;
      } else if (schema.contains("additionalProperties")) {
        const Json& others = schema["additionalProperties"];
        if (others.is_boolean() && !others.get<bool>()) return fmt::format("there is no `{}`", inner);
        if (Fault fault = check(parts[i], others, inner, depth + 1)) return fault;
      }
    }
    return std::nullopt;
  }

  Fault check_combinations(const Term& term, const Json& schema, const std::string& name, int depth) const {
    if (schema.contains("allOf") && schema["allOf"].is_array()) {
      for (const Json& one : schema["allOf"]) {
        if (Fault fault = check(term, one, name, depth + 1)) return fault;
      }
    }
    for (const char* const key : {"anyOf", "oneOf"}) {
      if (!schema.contains(key) || !schema[key].is_array() || schema[key].empty()) continue;
      Fault first;
      bool fits = false;
      for (const Json& one : schema[key]) {
        Fault fault = check(term, one, name, depth + 1);
        fits = fits || !fault;
        if (!first) first = std::move(fault);
      }
      if (!fits) return first;
    }
    return std::nullopt;
  }

  const Json& root_;
};

bool wants(const Json& schema, const char* type) {
  return schema.is_object() && schema.contains("type") && schema["type"] == type;
}

}  // namespace

std::optional<std::string> schema_fault(const Term& term, const Json& schema, const std::string& name) {
  return SchemaCheck(schema).check(term, schema, name, 0);
}

Json converted(Json value, const Json& schema) {
  if (wants(schema, "string") && !value.is_string()) return dump(value);
  if (value.is_string() &&
      (wants(schema, "number") || wants(schema, "integer") || wants(schema, "boolean"))) {
    std::optional<Json> inner = parse_json(value.get_ref<const std::string&>());
    const bool fits = inner && (wants(schema, "boolean") ? inner->is_boolean() : inner->is_number());
    return fits ? std::move(*inner) : std::move(value);
  }
  if (value.is_object() && schema.is_object() && schema.contains("properties") &&
      schema["properties"].is_object()) {
    for (auto& [key, member] : value.items()) {
      if (schema["properties"].contains(key))
        member = converted(std::move(member), schema["properties"][key]);
    }
  }
  if (value.is_array() && schema.is_object() && schema.contains("items") && schema["items"].is_object()) {
    for (Json& element : value) element = converted(std::move(element), schema["items"]);
  }
  return value;
}

}  // namespace verbatim::agent
