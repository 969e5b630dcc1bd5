#include "agent/grammar/plan_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "agent/plan/term.h"
#include "verbatim/error.h"

namespace verbatim::agent {

namespace {

constexpr int kMostElements = 8;  // of a list
constexpr int kDeepestValue = 4;  // lists and objects in each other
constexpr int64_t kLongestString = 100;
constexpr size_t kMostReferences = 64;  // the latest tasks alone

using Ids = std::vector<int64_t>;

std::string alternatives(const Ids& ids) {
  std::string text;
  for (const int64_t id : ids) text += (text.empty() ? "" : "|") + std::to_string(id);
  return text;
}

/// A string's content: any characters but those that need an escape, and references.
Structure string_structure(const Json& schema, const Ids& ids) {
  const auto limit = [&](const char* key, int64_t other) {
    return schema.contains(key) && schema[key].is_number_unsigned()
               ? std::min(schema[key].get<int64_t>(), kLongestString)
               : other;
  };
  const int64_t most = limit("maxLength", kLongestString);
  const int64_t least = std::min(limit("minLength", 0), most);
  const std::string character = "[^\"\\\\$\\x00-\\x1f\\x7f]";
  // With a length to keep, the text that a reference stands for cannot be counted on.
  const bool counted = schema.contains("maxLength") || schema.contains("minLength");
  const std::string unit =
      ids.empty() || counted ? character : fmt::format("({}|\\$\\{{({})\\}})", character, alternatives(ids));
  return Structure::regex(fmt::format("\"{}{{{},{}}}\"", unit, least, most));
}

Structure value_structure(const Json& root, const Json& schema, const Ids& ids, int depth);

Structure list_structure(const Json& root, const Json& schema, const Ids& ids, int depth) {
  const auto limit = [&](const char* key, int other) {
    return schema.contains(key) && schema[key].is_number_unsigned()
               ? static_cast<int>(std::min<uint64_t>(schema[key].get<uint64_t>(), kMostElements))
               : other;
  };
  const int most = limit("maxItems", kMostElements);
  const Json items =
      schema.contains("items") && schema["items"].is_object() ? schema["items"] : Json::object();
  return Structure::sequence({Structure::text("["),
                              Structure::repeat(value_structure(root, items, ids, depth + 1),
                                                std::min(limit("minItems", 0), most), most, ", "),
                              Structure::text("]")});
}

/// The properties that a schema asks for, in its order.
std::vector<std::string> required_of(const Json& schema) {
  std::vector<std::string> names;
  if (!schema.contains("required") || !schema["required"].is_array()) return names;
  for (const Json& name : schema["required"]) {
    if (name.is_string()) names.push_back(name.get<std::string>());
  }
  return names;
}

Json property_of(const Json& schema, const std::string& name) {
  const bool has = schema.contains("properties") && schema["properties"].is_object() &&
                   schema["properties"].contains(name);
  return has && schema["properties"][name].is_object() ? schema["properties"][name] : Json::object();
}

Structure object_structure(const Json& root, const Json& schema, const Ids& ids, int depth) {
  std::vector<Structure> parts = {Structure::text("{")};
  bool first = true;
  for (const std::string& name : required_of(schema)) {
    parts.push_back(Structure::text((first ? "" : ", ") + written(Term::of(name)) + ": "));
    parts.push_back(value_structure(root, property_of(schema, name), ids, depth + 1));
    first = false;
  }
  parts.push_back(Structure::text("}"));
  return Structure::sequence(std::move(parts));
}

/// What a schema without a reference of its own says.
Json resolved(const Json& root, Json schema) {
  for (int i = 0; i < kDeepestValue && schema.contains("$ref") && schema["$ref"].is_string(); ++i) {
    const std::string path = schema["$ref"].get<std::string>();
    try {
      schema = root.at(Json::json_pointer(path.starts_with("#") ? path.substr(1) : path));
    } catch (const Json::exception&) {
      return Json::object();
    }
    if (!schema.is_object()) return Json::object();
  }
  return schema;
}

Structure value_structure(const Json& root, const Json& given, const Ids& ids, int depth) {
  const Json schema = resolved(root, given);
  std::vector<Structure> choices;
  for (const int64_t id : ids) choices.push_back(Structure::text("$" + std::to_string(id)));
  const auto chosen = [&](Structure other) {
    choices.push_back(std::move(other));
    return Structure::choice(std::move(choices));
  };
  const bool listed = schema.contains("enum") && schema["enum"].is_array() && !schema["enum"].empty();
  if (schema.contains("const") || listed) {
    for (const Json& one : listed ? schema["enum"] : Json::array({schema["const"]})) {
      choices.push_back(Structure::text(written(Term::of(one))));
    }
    return Structure::choice(std::move(choices));
  }
  for (const char* const key : {"anyOf", "oneOf"}) {
    if (!schema.contains(key) || !schema[key].is_array() || schema[key].empty() || depth >= kDeepestValue)
      continue;
    for (const Json& one : schema[key]) {
      if (one.is_object()) choices.push_back(value_structure(root, one, ids, depth + 1));
    }
    return Structure::choice(std::move(choices));
  }
  std::string type = "string";
  if (schema.contains("type")) {
    const Json& types = schema["type"];
    type = types.is_array() && !types.empty() ? as_text(types[0]) : as_text(types);
  }
  if (type == "array" && depth < kDeepestValue) return chosen(list_structure(root, schema, ids, depth));
  if (type == "object" && depth < kDeepestValue) return chosen(object_structure(root, schema, ids, depth));
  if (type == "number" || type == "integer") {
    Json plain = {{"type", type}};
    for (const char* const key : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}) {
      if (schema.contains(key) && schema[key].is_number()) plain[key] = schema[key];
    }
    return chosen(Structure::json_schema(dump(plain)));
  }
  if (type == "boolean") return chosen(Structure::regex("true|false"));
  if (type == "null") return chosen(Structure::text("null"));
  return chosen(string_structure(schema, ids));
}

/// Whether a plan can give an argument by this name.
bool nameable(const std::string& name) {
  const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  return !name.empty() && letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

/// The call of a tool, from its name to the parenthesis.
Structure call_structure(const ToolDeclaration& tool, const Ids& ids) {
  const Json& schema = tool.parameters;
  std::vector<std::string> names;
  if (schema.contains("properties") && schema["properties"].is_object()) {
    for (const auto& [name, property] : schema["properties"].items()) names.push_back(name);
  }
  const std::vector<std::string> required = required_of(schema);
  const auto is_required = [&](const std::string& name) {
    return std::find(required.begin(), required.end(), name) != required.end();
  };
  std::vector<Structure> parts = {Structure::text(tool.name + "(")};
  bool first = true;
  bool by_position = true;  // until a property is left out
  for (const std::string& name : names) {
    if (!is_required(name)) {
      by_position = false;
      continue;
    }
    parts.push_back(Structure::text((first ? "" : ", ") + (by_position ? std::string() : name + "=")));
    parts.push_back(value_structure(schema, property_of(schema, name), ids, 0));
    first = false;
  }
  std::vector<Structure> one_only;
  for (const std::string& name : names) {
    if (is_required(name) || !nameable(name)) continue;
    Structure given = Structure::sequence({Structure::text((first ? "" : ", ") + name + "="),
                                           value_structure(schema, property_of(schema, name), ids, 0)});
    if (first) {
      one_only.push_back(std::move(given));
    } else {
      parts.push_back(Structure::repeat(std::move(given), 0, 1));
    }
  }
  if (!one_only.empty()) parts.push_back(Structure::repeat(Structure::choice(std::move(one_only)), 0, 1));
  parts.push_back(Structure::text(")"));
  return Structure::sequence(std::move(parts));
}

Structure any_call(const std::vector<ToolDeclaration>& tools, const Ids& ids) {
  std::vector<Structure> calls;
  for (const ToolDeclaration& tool : tools) calls.push_back(call_structure(tool, ids));
  return Structure::choice(std::move(calls));
}

Ids latest(const std::set<int64_t>& known) {
  Ids ids(known.begin(), known.end());
  if (ids.size() > kMostReferences) ids.erase(ids.begin(), ids.end() - kMostReferences);
  return ids;
}

}  // namespace

Structure plan_structure(const std::vector<ToolDeclaration>& tools, const std::set<int64_t>& known,
                         int64_t first, int64_t most) {
  Structure rest = Structure::text("join()");
  if (tools.empty()) return rest;
  for (int64_t id = first + most - 1; id >= first; --id) {
    std::set<int64_t> earlier = known;
    for (int64_t before = first; before < id; ++before) earlier.insert(before);
    rest = Structure::choice(
        {Structure::sequence({Structure::text(fmt::format("{}. ", id)), any_call(tools, latest(earlier)),
                              Structure::text("\n"), rest}),
         Structure::text("join()")});
  }
  return rest;
}

Structure joiner_structure(bool may_replan) {
  return Structure::regex(fmt::format("Thought: [^\\n]{{1,300}}\\nAction: {}\\([^\\n]{{1,300}}\\)",
                                      may_replan ? "(Finish|Replan)" : "Finish"));
}

Structure turn_structure(const std::vector<ToolDeclaration>& tools, const std::set<int64_t>& known,
                         bool parallel) {
  const Structure thought = Structure::regex("Thought: [^\\n]{1,300}\\n");
  const Structure answer = Structure::regex("Answer: [^\\n]{1,300}");
  if (tools.empty()) return Structure::sequence({thought, answer});
  const Structure action = Structure::sequence(
      {Structure::text("Action: "), any_call(tools, latest(known)), Structure::text("\n")});
  constexpr int kMostCalls = 8;
  return Structure::sequence(
      {thought, Structure::choice({Structure::repeat(action, 1, parallel ? kMostCalls : 1), answer})});
}

}  // namespace verbatim::agent
