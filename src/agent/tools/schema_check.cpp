#include "agent/tools/schema_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "verbatim/text.h"

namespace verbatim::agent {

namespace {

constexpr int kMostReferences = 32;     // followed one after the other
constexpr size_t kMostSteps = 100'000;  // of the check of one value
constexpr size_t kMembersPerStep = 16;  // that are looked through in the time of one step of a check

using Fault = std::optional<std::string>;

/// What may still be done for one value. A schema whose combinations lead back to themselves asks for more
/// than can ever be done, and schemas come from servers that nobody vouches for.
class StepsLeft {
 public:
  /// Whether this much may be done; if not, nothing may be done any more.
  bool take(size_t steps) {
    left_ = steps <= left_ ? left_ - steps : 0;
    return left_ > 0;
  }

 private:
  size_t left_ = kMostSteps;
};

/// A term or a value within one, as the check sees it, without a copy.
class Part {
 public:
  explicit Part(const Term& term)
      : term_(term.kind == Term::Kind::kValue ? nullptr : &term),
        value_(term.kind == Term::Kind::kValue ? &term.value : nullptr) {}
  explicit Part(const Json& value) : value_(&value) {}

  /// The value; null where references are within it.
  const Json* value() const { return value_; }

  /// The type as schemas name it, or nothing if only the result will tell.
  std::string type() const {
    if (!value_) {
      if (term_->kind == Term::Kind::kReference) return {};
      return term_->kind == Term::Kind::kText   ? "string"
             : term_->kind == Term::Kind::kList ? "array"
                                                : "object";
    }
    if (value_->is_null()) return "null";
    if (value_->is_boolean()) return "boolean";
    if (value_->is_number_integer()) return "integer";
    if (value_->is_number()) {
      const auto number = value_->get<double>();
      return number == std::floor(number) ? "integer" : "number";
    }
    return value_->is_string() ? "string" : value_->is_array() ? "array" : "object";
  }

  /// How many elements or members there are.
  size_t size() const { return value_ ? value_->size() : term_->parts.size(); }

  bool has_key(const std::string& key) const {
    return value_ ? value_->contains(key)
                  : std::find(term_->keys.begin(), term_->keys.end(), key) != term_->keys.end();
  }

  /// Visits the elements of a list up to the first fault.
  template <typename Visit>
  Fault first_fault_of_elements(Visit visit) const {
    for (size_t i = 0; i < size(); ++i) {
      if (Fault fault = visit(i, value_ ? Part((*value_)[i]) : Part(term_->parts[i]))) return fault;
    }
    return std::nullopt;
  }

  /// Visits the members of an object up to the first fault.
  template <typename Visit>
  Fault first_fault_of_members(Visit visit) const {
    if (value_) {
      for (const auto& [key, member] : value_->items()) {
        if (Fault fault = visit(key, Part(member))) return fault;
      }
      return std::nullopt;
    }
    for (size_t i = 0; i < term_->parts.size(); ++i) {
      if (Fault fault = visit(term_->keys[i], Part(term_->parts[i]))) return fault;
    }
    return std::nullopt;
  }

 private:
  const Term* term_ = nullptr;
  const Json* value_ = nullptr;
};

bool is_type(const std::string& type, const Json& wanted) {
  return wanted.is_string() && (wanted == type || (wanted == "number" && type == "integer"));
}

std::string with_article(const std::string& type) {
  const bool vowel = !type.empty() && std::string_view("aeiou").find(type.front()) != std::string_view::npos;
  return (vowel ? "an " : "a ") + type;
}

class SchemaCheck {
 public:
  explicit SchemaCheck(const Json& root) : root_(root) {}

  Fault check(const Part& part, const Json& given, const std::string& name, int depth) {
    const Json* const schema = resolved(given);
    if (!schema || depth > kDeepestJson || !steps_.take(1 + schema->size() / kMembersPerStep)) {
      return std::nullopt;
    }
    if (schema->is_boolean()) {
      return schema->get<bool>() ? Fault() : fmt::format("`{}` may not be given", name);
    }
    if (!schema->is_object()) return std::nullopt;
    const std::string type = part.type();
    if (type.empty()) return std::nullopt;
    if (Fault fault = check_type(type, *schema, name)) return fault;
    if (Fault fault = check_values(part, *schema, name)) return fault;
    if (Fault fault = check_sizes(part, type, *schema, name)) return fault;
    if (type == "array") {
      if (Fault fault = check_items(part, *schema, name, depth)) return fault;
    }
    if (type == "object") {
      if (Fault fault = check_members(part, *schema, name, depth)) return fault;
    }
    return check_combinations(part, *schema, name, depth);
  }

  /// The schema that a reference within the root leads to; null if there is none.
  const Json* resolved(const Json& schema) {
    const Json* at = &schema;
    for (int i = 0; i < kMostReferences; ++i) {
      if (!at->is_object() || !at->contains("$ref") || !(*at)["$ref"].is_string()) return at;
      std::string path = (*at)["$ref"].get<std::string>();
      if (!path.starts_with("#") || !steps_.take(1 + path.size() / kMembersPerStep)) return nullptr;
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

  StepsLeft& steps() { return steps_; }

 private:
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

  Fault check_values(const Part& part, const Json& schema, const std::string& name) {
    if (!part.value()) return std::nullopt;
    const Json& value = *part.value();
    if (schema.contains("const") && value != schema["const"]) {
      return fmt::format("`{}` should be {}", name, shown(dump(schema["const"]), kShownBytes));
    }
    if (!schema.contains("enum") || !schema["enum"].is_array()) return std::nullopt;
    if (!steps_.take(1 + schema["enum"].size() / kMembersPerStep)) return std::nullopt;
    for (const Json& one : schema["enum"]) {
      if (value == one) return std::nullopt;
    }
    return fmt::format("`{}` should be one of {}, and is {}", name,
                       shown(dump(schema["enum"]), 4 * kShownBytes), shown(dump(value), kShownBytes));
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

  Fault check_sizes(const Part& part, const std::string& type, const Json& schema, const std::string& name) {
    if (type == "array") {
      return check_range(static_cast<double>(part.size()), fmt::format("the length of `{}`", name), schema,
                         "minItems", "maxItems");
    }
    if (!part.value()) return std::nullopt;
    const Json& value = *part.value();
    if (value.is_string() && (schema.contains("minLength") || schema.contains("maxLength"))) {
      const auto& text = value.get_ref<const std::string&>();
      constexpr size_t kBytesPerStep = 4096;
      if (!steps_.take(1 + text.size() / kBytesPerStep)) return std::nullopt;
      const auto characters = std::count_if(
          text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
      return check_range(static_cast<double>(characters), fmt::format("the length of `{}`", name), schema,
                         "minLength", "maxLength");
    }
    if (!value.is_number()) return std::nullopt;
    const auto number = value.get<double>();
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

  Fault check_items(const Part& part, const Json& schema, const std::string& name, int depth) {
    if (!schema.contains("items") || schema["items"].is_array()) return std::nullopt;
    const Json& items = schema["items"];
    return part.first_fault_of_elements([&](size_t i, const Part& element) {
      return check(element, items, fmt::format("{}[{}]", name, i), depth + 1);
    });
  }

  Fault check_members(const Part& part, const Json& schema, const std::string& name, int depth) {
    const std::string prefix = name.empty() ? "" : name + ".";
    if (schema.contains("required") && schema["required"].is_array()) {
      for (const Json& key : schema["required"]) {
        if (!key.is_string()) continue;
        if (!steps_.take(1 + part.size() / kMembersPerStep)) return std::nullopt;
        if (!part.has_key(key.get<std::string>())) {
          return fmt::format("`{}{}` is missing", prefix, shown(key.get<std::string>(), kShownBytes));
        }
      }
    }
    const bool has_properties = schema.contains("properties") && schema["properties"].is_object();
    const Json none = Json::object();
    const Json& properties = has_properties ? schema["properties"] : none;
    return part.first_fault_of_members([&](const std::string& key, const Part& member) -> Fault {
      if (!steps_.take(1 + properties.size() / kMembersPerStep)) return std::nullopt;
      const std::string inner = prefix + shown(key, kShownBytes);
      const auto property = properties.find(key);
      if (property != properties.end()) return check(member, *property, inner, depth + 1);
      if (!schema.contains("additionalProperties")) return std::nullopt;
      const Json& others = schema["additionalProperties"];
      if (others.is_boolean() && !others.get<bool>()) return fmt::format("there is no `{}`", inner);
      return check(member, others, inner, depth + 1);
    });
  }

  Fault check_combinations(const Part& part, const Json& schema, const std::string& name, int depth) {
    if (schema.contains("allOf") && schema["allOf"].is_array()) {
      for (const Json& one : schema["allOf"]) {
        if (Fault fault = check(part, one, name, depth + 1)) return fault;
      }
    }
    for (const char* const key : {"anyOf", "oneOf"}) {
      if (!schema.contains(key) || !schema[key].is_array() || schema[key].empty()) continue;
      Fault first;
      bool fits = false;
      for (const Json& one : schema[key]) {
        Fault fault = check(part, one, name, depth + 1);
        fits = fits || !fault;
        if (!first) first = std::move(fault);
      }
      if (!fits) return first;
    }
    return std::nullopt;
  }

  const Json& root_;
  StepsLeft steps_;
};

/// Whether a schema's `type` names a type, alone or among others.
bool names_type(const Json& schema, const char* type) {
  const Json& wanted = schema["type"];
  return wanted == type || (wanted.is_array() && std::any_of(wanted.begin(), wanted.end(),
                                                             [&](const Json& one) { return one == type; }));
}

/// How many steps of a check a copy of a value is worth, counted up to the most that matters.
size_t steps_to_copy(const Json& value, size_t most) {
  constexpr size_t kBytesPerStep = 256;
  size_t count = 1 + (value.is_string() ? value.get_ref<const std::string&>().size() / kBytesPerStep : 0);
  if (!value.is_structured()) return count;
  for (const Json& one : value) {
    if (count >= most) break;
    count += steps_to_copy(one, most - count);
  }
  return count;
}

/// Makes values what a schema wants, along the schema's references and combinations.
class Conversion {
 public:
  explicit Conversion(const Json& root) : check_(root) {}

  Json convert(Json value, const Json& given, int depth) {
    const Json* const schema = check_.resolved(given);
    if (!schema || !schema->is_object() || depth > kDeepestJson ||
        !check_.steps().take(1 + schema->size() / kMembersPerStep)) {
      return value;
    }
    if (schema->contains("type")) value = to_type(std::move(value), *schema);
    if (value.is_object() && schema->contains("properties") && (*schema)["properties"].is_object()) {
      const Json& properties = (*schema)["properties"];
      for (auto& [key, member] : value.items()) {
        if (!check_.steps().take(1 + properties.size() / kMembersPerStep)) break;
        const auto property = properties.find(key);
        if (property != properties.end()) member = convert(std::move(member), *property, depth + 1);
      }
    }
    if (value.is_array() && schema->contains("items") && (*schema)["items"].is_object()) {
      for (Json& element : value) element = convert(std::move(element), (*schema)["items"], depth + 1);
    }
    if (schema->contains("allOf") && (*schema)["allOf"].is_array()) {
      for (const Json& one : (*schema)["allOf"]) value = convert(std::move(value), one, depth + 1);
    }
    for (const char* const key : {"anyOf", "oneOf"}) {
      if (schema->contains(key) && (*schema)[key].is_array()) {
        value = to_first_fit(std::move(value), (*schema)[key], depth + 1);
      }
    }
    return value;
  }

 private:
  static Json to_type(Json value, const Json& schema) {
    if (!value.is_string()) {
      const std::string type = Part(value).type();
      const bool as_it_is =
          names_type(schema, type.c_str()) || (type == "integer" && names_type(schema, "number"));
      if (!as_it_is && names_type(schema, "string")) return dump(value);
      return value;
    }
    const bool number = names_type(schema, "number") || names_type(schema, "integer");
    const bool truth = names_type(schema, "boolean");
    const auto& text = value.get_ref<const std::string&>();
    constexpr size_t kLongestNumber = 1000;
    if (names_type(schema, "string") || (!number && !truth) || text.size() > kLongestNumber) return value;
    std::optional<Json> inner = parse_json(text);
    const bool fits = inner && ((truth && inner->is_boolean()) || (number && inner->is_number()));
    return fits ? std::move(*inner) : std::move(value);
  }

  bool fits(const Json& value, const Json& schema, int depth) {
    return !check_.check(Part(value), schema, "", depth);
  }

  /// The value itself if it fits one of several schemas, or else as the first makes it that then fits.
  Json to_first_fit(Json value, const Json& schemas, int depth) {
    for (const Json& one : schemas) {
      if (fits(value, one, depth)) return value;
    }
    for (const Json& one : schemas) {
      if (!check_.steps().take(steps_to_copy(value, kMostSteps))) return value;
      Json changed = convert(value, one, depth);
      if (fits(changed, one, depth)) return changed;
    }
    return value;
  }

  SchemaCheck check_;
};

}  // namespace

std::optional<std::string> schema_fault(const Term& term, const Json& schema, const std::string& name) {
  return SchemaCheck(schema).check(Part(term), schema, name, 0);
}

Json converted(Json value, const Json& schema) {
  return Conversion(schema).convert(std::move(value), schema, 0);
}

}  // namespace verbatim::agent
