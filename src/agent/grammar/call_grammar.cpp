#include "agent/grammar/call_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <initializer_list>
#include <optional>

#include "agent/plan/term.h"
#include "agent/tools/schema_check.h"
#include "verbatim/error.h"
#include "verbatim/text.h"

namespace verbatim::agent {

namespace {

constexpr int kDeepestValue = 4;      // lists and objects in each other
constexpr int kMostSchemaSteps = 32;  // of schemas, followed one after the other
/// The values of one call's structure, and of those of all tools. A plan's grammar has them for every line,
/// and a schema that refers to itself is small and has many.
constexpr int64_t kMostValues = 1000;
constexpr int64_t kMostValuesInAll = 5000;

using Ids = std::vector<int64_t>;

/// Why a structure cannot say what a schema does.
struct Unwritable {
  std::string why;
};

/// The keywords that arguments are checked for.
constexpr std::string_view kChecked[] = {"type",
                                         "enum",
                                         "const",
                                         "properties",
                                         "required",
                                         "additionalProperties",
                                         "items",
                                         "minimum",
                                         "maximum",
                                         "exclusiveMinimum",
                                         "exclusiveMaximum",
                                         "minLength",
                                         "maxLength",
                                         "minItems",
                                         "maxItems",
                                         "anyOf",
                                         "oneOf",
                                         "allOf"};

/// Refuses a schema that has checked keywords beside those of `known`.
void require_alone(const Json& schema, std::initializer_list<std::string_view> known) {
  for (const std::string_view key : kChecked) {
    if (schema.contains(key) && std::find(known.begin(), known.end(), key) == known.end())
      throw Unwritable{fmt::format("`{}` stands beside `{}`", key, *known.begin())};
  }
}

bool is_list(const Json& schema, const char* key) {
  return schema.contains(key) && schema[key].is_array() && !schema[key].empty();
}

/// The names that a schema requires, each once.
std::vector<std::string> required_of(const Json& schema) {
  std::vector<std::string> names;
  if (!schema.is_object() || !schema.contains("required") || !schema["required"].is_array()) return names;
  for (const Json& name : schema["required"]) {
    if (name.is_string() && std::find(names.begin(), names.end(), name.get<std::string>()) == names.end())
      names.push_back(name.get<std::string>());
  }
  return names;
}

/// The schema of a property that must be given.
const Json& required_property(const Json& schema, const std::string& name) {
  if (!schema.contains("properties") || !schema["properties"].is_object() ||
      !schema["properties"].contains(name)) {
    throw Unwritable{fmt::format("`{}` is required, and is no property", shown(name, kShownBytes))};
  }
  return schema["properties"][name];
}

struct Range {
  int least = 0;
  int most = 0;
};

/// A size between two keywords' numbers, and at most `usual`, or the least if that is more.
Range range_of(const Json& schema, const char* least_key, const char* most_key, int most, int usual) {
  const auto limit = [&](const char* key, double other) {
    return schema.contains(key) && schema[key].is_number() ? schema[key].get<double>() : other;
  };
  const double low = std::max(0.0, std::ceil(limit(least_key, 0)));
  const double high = std::min<double>(most, std::floor(limit(most_key, most)));
  if (low > high) {
    throw Unwritable{low > most ? fmt::format("`{}` is more than {}", least_key, most)
                                : fmt::format("`{}` is more than `{}`", least_key, most_key)};
  }
  return {.least = static_cast<int>(low),
          .most = static_cast<int>(std::min(high, std::max<double>(usual, low)))};
}

/// Writes values of a tool's schema.
class ValueWriter {
 public:
  ValueWriter(const Json& root, const Ids& ids, const CallLimits& limits)
      : root_(root), ids_(ids), limits_(limits) {
    for (const int64_t id : ids) {
      references_.push_back(Bounded::text("$" + std::to_string(id)));
      numbers_ += (numbers_.empty() ? "" : "|") + std::to_string(id);
    }
    if (!ids.empty()) references_ = {Bounded::choice(std::move(references_))};
  }

  /// A value that the schema allows, or a reference.
  Bounded value(const Json& schema, int depth) {
    Bounded own = own_value(schema, depth);
    if (references_.empty()) return own;
    return Bounded::choice({references_.front(), std::move(own)});
  }

  int64_t values() const { return values_; }

 private:
  void count(size_t values) {
    values_ += static_cast<int64_t>(values);
    if (values_ > kMostValues) throw Unwritable{fmt::format("it has more than {} values", kMostValues)};
  }

  static void check_depth(int depth, std::string_view what) {
    if (depth >= kDeepestValue)
      throw Unwritable{fmt::format("`{}` lies deeper than {}", what, kDeepestValue)};
  }

  /// The schema that references lead to, and one that allows all where they lead nowhere.
  const Json& resolved(const Json& schema) const {
    static const Json any = Json::object();
    const Json* at = &schema;
    for (int i = 0; i < kMostSchemaSteps; ++i) {
      if (at->is_boolean() && !at->get<bool>()) throw Unwritable{"`false` allows no value"};
      if (!at->is_object()) return any;
      if (!at->contains("$ref") || !(*at)["$ref"].is_string()) return *at;
      const auto path = (*at)["$ref"].get<std::string>();
      if (!path.starts_with("#")) return any;
      try {
        at = &root_.at(Json::json_pointer(path.substr(1)));
      } catch (const Json::exception&) {
        return any;
      }
    }
    return any;
  }

  Bounded own_value(const Json& given, int depth) {
    count(1);
    const Json& schema = resolved(given);
    if (is_list(schema, "allOf")) {
      if (schema["allOf"].size() > 1) throw Unwritable{"`allOf` has more than one schema"};
      require_alone(schema, {"allOf"});
      check_depth(depth, "allOf");
      return own_value(schema["allOf"][0], depth + 1);
    }
    if (schema.contains("const") || (schema.contains("enum") && schema["enum"].is_array()))
      return listed_value(schema);
    for (const char* const key : {"anyOf", "oneOf"}) {
      if (is_list(schema, key)) return any_value(schema, key, depth);
    }
    const std::string type = type_of(schema);
    if (type == "array") return list(schema, depth);
    if (type == "object") return object(schema, depth);
    if (type == "number" || type == "integer") return number(schema, type);
    if (type == "boolean") return Bounded::regex("true|false", 5);
    if (type == "null") return Bounded::text("null");
    return string(schema);
  }

  Bounded listed_value(const Json& schema) {
    require_alone(schema,
                  {schema.contains("const") ? "const" : "enum", "const", "enum", "type", "minimum", "maximum",
                   "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems"});
    Json others = schema;  // what each value must fit besides being listed
    const bool listed = schema.contains("enum") && schema["enum"].is_array();
    if (listed) others.erase("enum");
    const Json values = listed ? schema["enum"] : Json::array({schema["const"]});
    count(values.size());
    std::vector<Bounded> choices;
    for (const Json& one : values) {
      if (!schema_fault(Term::of(one), others, "")) choices.push_back(Bounded::text(written(Term::of(one))));
    }
    if (choices.empty()) throw Unwritable{"none of the listed values fits"};
    return Bounded::choice(std::move(choices));
  }

  /// Any alternative that can be written.
  Bounded any_value(const Json& schema, const char* key, int depth) {
    require_alone(schema, {key});
    check_depth(depth, key);
    std::vector<Bounded> choices;
    std::string why;
    for (const Json& one : schema[key]) {
      try {
        choices.push_back(own_value(one, depth + 1));
      } catch (const Unwritable& reason) {
        why = reason.why;
      }
    }
    if (choices.empty()) throw Unwritable{why};
    return Bounded::choice(std::move(choices));
  }

  /// The first type that a schema names, or the one that its keywords are of.
  static std::string type_of(const Json& schema) {
    const auto known = [](const Json& type) {
      for (const char* const one : {"string", "number", "integer", "boolean", "null", "array", "object"}) {
        if (type == one) return true;
      }
      return false;
    };
    if (schema.contains("type") && (schema["type"].is_string() || schema["type"].is_array())) {
      for (const Json& type : schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]})) {
        if (known(type)) return type.get<std::string>();
      }
      throw Unwritable{fmt::format("there is no type {}", shown(dump(schema["type"]), kShownBytes))};
    }
    if (schema.contains("properties") || schema.contains("required")) return "object";
    return schema.contains("items") ? "array" : "string";
  }

  /// A string's content: any characters but those that need an escape, and references.
  Bounded string(const Json& schema) const {
    const Range range =
        range_of(schema, "minLength", "maxLength", CallLimits{}.characters, limits_.characters);
    if (range.most == 0) return Bounded::text("\"\"");
    const std::string character = "[^\"\\\\$\\x00-\\x1f\\x7f]";
    // With a length to keep, the text that a reference stands for cannot be counted on.
    const bool counted = schema.contains("maxLength") || schema.contains("minLength");
    const std::string unit =
        ids_.empty() || counted ? character : fmt::format("({}|\\$\\{{({})\\}})", character, numbers_);
    const int64_t unit_bytes =
        unit == character ? 4 : std::max<int64_t>(4, std::ssize(std::to_string(ids_.back())) + 3);
    return Bounded::regex(fmt::format("\"{}{{{},{}}}\"", unit, range.least, range.most),
                          range.most * unit_bytes + 2);
  }

  static Bounded number(const Json& schema, const std::string& type) {
    Json plain = {{"type", type}};
    for (const char* const key : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}) {
      if (schema.contains(key) && schema[key].is_number()) plain[key] = schema[key];
    }
    // A sign, 15 digits, a point with 15 and an exponent; fractions beyond a limit have up to 46 digits.
    const int64_t bytes = type == "integer" ? 16 : plain.size() == 1 ? 36 : 63;
    try {
      return Bounded::json_schema(dump(plain), bytes);
    } catch (const Error& error) {
      throw Unwritable{error.what()};
    }
  }

  Bounded list(const Json& schema, int depth) {
    check_depth(depth, "array");
    const Range range = range_of(schema, "minItems", "maxItems", CallLimits{}.elements, limits_.elements);
    if (range.most == 0) return Bounded::text("[]");
    const bool alike = schema.contains("items") && !schema["items"].is_array();
    Bounded element = value(alike ? schema["items"] : Json::object(), depth + 1);
    return Bounded::sequence({Bounded::text("["),
                              Bounded::repeat(std::move(element), range.least, range.most, ", "),
                              Bounded::text("]")});
  }

  /// An object of its required members alone.
  Bounded object(const Json& schema, int depth) {
    check_depth(depth, "object");
    std::vector<Bounded> parts = {Bounded::text("{")};
    for (const std::string& name : required_of(schema)) {
      parts.push_back(Bounded::text((parts.size() == 1 ? "" : ", ") + written(Term::of(name)) + ": "));
      parts.push_back(value(required_property(schema, name), depth + 1));
    }
    parts.push_back(Bounded::text("}"));
    return Bounded::sequence(std::move(parts));
  }

  const Json& root_;
  const Ids& ids_;
  const CallLimits& limits_;
  std::vector<Bounded> references_;  // none, or the choice of all
  std::string numbers_;
  int64_t values_ = 0;
};

/// Whether a plan can give an argument by this name.
bool nameable(const std::string& name) {
  const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  return !name.empty() && letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

/// Refuses what no call's structure says of its arguments as a whole.
void check_arguments(const Json& schema) {
  if (schema.is_boolean() && !schema.get<bool>()) throw Unwritable{"`false` allows no arguments"};
  if (!schema.is_object()) return;
  for (const char* const key : {"$ref", "allOf", "anyOf", "oneOf", "enum", "const"}) {
    if (schema.contains(key)) throw Unwritable{fmt::format("`{}` stands at its root", key)};
  }
  if (schema_fault(Term::of(Json::object()),
                   schema.contains("type") ? Json{{"type", schema["type"]}} : Json(true), ""))
    throw Unwritable{"its arguments are no object"};
}

/// The structure of a call. Arguments that need not be given and cannot be written are told to `left_out`.
Bounded written_call(const ToolDeclaration& tool, const Ids& ids, const CallLimits& limits,
                     std::vector<std::string>& left_out, int64_t& values) {
  const Json& schema = tool.parameters;
  check_arguments(schema);
  ValueWriter writer(schema, ids, limits);
  const std::vector<std::string> required = required_of(schema);
  for (const std::string& name : required) required_property(schema, name);
  std::vector<Bounded> parts = {Bounded::text(tool.name + "(")};
  const Json none = Json::object();
  const bool has_properties =
      schema.is_object() && schema.contains("properties") && schema["properties"].is_object();
  const Json& properties = has_properties ? schema["properties"] : none;
  const auto is_required = [&](const std::string& name) {
    return std::find(required.begin(), required.end(), name) != required.end();
  };
  bool by_position = true;  // until a property is left out
  for (const auto& [name, property] : properties.items()) {
    if (!is_required(name)) {
      by_position = false;
      continue;
    }
    if (!by_position && !nameable(name))
      throw Unwritable{fmt::format("`{}` is no name of an argument", shown(name, kShownBytes))};
    parts.push_back(
        Bounded::text((parts.size() == 1 ? "" : ", ") + (by_position ? std::string() : name + "=")));
    parts.push_back(writer.value(property, 0));
  }
  const bool first = parts.size() == 1;
  std::vector<Bounded> one_only;
  for (const auto& [name, property] : properties.items()) {
    if (is_required(name)) continue;
    try {
      if (!nameable(name)) throw Unwritable{"it is no name of an argument"};
      Bounded given =
          Bounded::sequence({Bounded::text((first ? "" : ", ") + name + "="), writer.value(property, 0)});
      if (first) {
        one_only.push_back(std::move(given));
      } else {
        parts.push_back(Bounded::repeat(std::move(given), 0, 1));
      }
    } catch (const Unwritable& reason) {
      left_out.push_back(fmt::format("the argument `{}` of `{}` is never given: {}", shown(name, kShownBytes),
                                     tool.name, reason.why));
    }
  }
  if (!one_only.empty()) parts.push_back(Bounded::repeat(Bounded::choice(std::move(one_only)), 0, 1));
  parts.push_back(Bounded::text(")"));
  values = writer.values();
  return Bounded::sequence(std::move(parts));
}

}  // namespace

WritableTools writable(const std::vector<ToolDeclaration>& tools) {
  WritableTools result;
  int64_t in_all = 0;
  for (const ToolDeclaration& tool : tools) {
    std::vector<std::string> notes;
    try {
      int64_t values = 0;
      written_call(tool, {}, {}, notes, values);
      if (in_all + values > kMostValuesInAll)
        throw Unwritable{fmt::format("the tools have more than {} values together", kMostValuesInAll)};
      in_all += values;
      result.tools.push_back(tool);
      result.left_out.insert(result.left_out.end(), notes.begin(), notes.end());
    } catch (const Unwritable& reason) {
      result.left_out.push_back(fmt::format(
          "the tool `{}` is left out, as no grammar can hold to its schema: {}", tool.name, reason.why));
    }
  }
  return result;
}

Bounded call_structure(const ToolDeclaration& tool, const Ids& ids, const CallLimits& limits) {
  std::vector<std::string> notes;
  int64_t values = 0;
  try {
    return written_call(tool, ids, limits, notes, values);
  } catch (const Unwritable& reason) {
    throw Error(ErrorKind::kBadInput,
                fmt::format("no grammar can hold to the schema of the tool `{}`: {}", tool.name, reason.why));
  }
}

}  // namespace verbatim::agent
