#include "structure/json_schema.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/printable.h"
#include "structure/grammar.h"
#include "structure/json_nodes.h"
#include "structure/json_numbers.h"
#include "structure/regex_node.h"
#include "structure/schema_merge.h"

namespace verbatim {

namespace {

const char* const kSeparator = ", ";
constexpr size_t kLongestSchema = size_t{1} << 20;
constexpr int kDeepestSchema = 128;
/// The most schemas that a schema may unfold into where references and unions must be resolved.
constexpr int kMostSchemas = 20000;
constexpr size_t kMostNames = 5000;
/// The most JSON values that are copied or compared on the way to make schemas one.
constexpr size_t kMostCopied = 4'000'000;
/// The largest minLength, maxLength, minItems and maxItems.
constexpr int64_t kLargestCount = 1'000'000;

/// The keywords that say something about values of one type.
struct TypeKeywords {
  std::string_view type;
  std::vector<std::string_view> keywords;
};
const std::vector<TypeKeywords>& type_keywords() {
  static const std::vector<TypeKeywords> all = {
      {"object", {"properties", "required", "additionalProperties"}},
      {"array", {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}},
      {"string", {"minLength", "maxLength", "pattern", "format"}},
      {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
  };
  return all;
}

bool among(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Refuses objects with so many keys that looking for one, which OrderedJson does key by key, takes long.
void check_names(const nlohmann::json& json) {
  if (!json.is_structured()) return;
  if (json.is_object() && json.size() > kMostNames) {
    bad_input("an object of the schema has more than {} keys; use fewer", kMostNames);
  }
  for (const nlohmann::json& part : json) check_names(part);
}

class SchemaReader {
 public:
  explicit SchemaReader(const OrderedJson& root) : root_(root) {}

  NodePointer read() {
    rule_of("#", root_);
    for (size_t i = 0; i < rules_.size(); ++i) {
      if (rules_[i] != nullptr) continue;    // the rule of all values
      const std::string place = places_[i];  // a copy, as new rules move the places
      rules_[i] = value(*schemas_[i], place, 0);
    }
    return make_node({.kind = Structure::Node::Kind::kRules, .texts = places_, .parts = rules_});
  }

 private:
  int32_t add_rule(const std::string& place, const OrderedJson* schema, NodePointer node) {
    rules_.push_back(std::move(node));
    places_.push_back(place);
    schemas_.push_back(schema);
    return static_cast<int32_t>(rules_.size()) - 1;
  }
  int32_t rule_of(const std::string& place, const OrderedJson& schema) {
    const auto found = rule_numbers_.find(place);
    if (found != rule_numbers_.end()) return found->second;
    return rule_numbers_[place] = add_rule(place, &schema, nullptr);
  }
  int32_t any_rule() {
    if (any_rule_ < 0) {
      any_rule_ = add_rule("any value", nullptr, any_value_node(static_cast<int32_t>(rules_.size())));
    }
    return any_rule_;
  }
  NodePointer any() { return reference_node(any_rule()); }

  /// The schema that a reference means.
  const OrderedJson& resolve(const OrderedJson& reference, const std::string& place) const {
    if (!reference.is_string()) bad_input("{}: $ref should be a text", place);
    std::string path = reference.get<std::string>();
    if (!path.starts_with('#')) {
      bad_input("{}: $ref {} leads out of the schema; only # and #/... are possible", place, printable(path));
    }
    try {
      return root_.at(OrderedJson::json_pointer(path.substr(1)));
    } catch (const OrderedJson::exception&) {
      bad_input("{}: there is nothing at $ref {}", place, printable(path));
    }
  }

  void count_schema(const std::string& place) {
    if (++count_ > kMostSchemas) {
      bad_input("{}: the schema unfolds into more than {} schemas; simplify it", place, kMostSchemas);
    }
  }

  /// Counts what a copy takes.
  void count_copy(const OrderedJson& json, const std::string& place) { count_work(values_in(json), place); }
  void count_work(size_t work, const std::string& place) {
    copied_ += work;
    if (copied_ > kMostCopied) {
      bad_input("{}: the schema unfolds into too many parts; simplify it", place);
    }
  }

  OrderedJson merged(const OrderedJson& a, const OrderedJson& b, const std::string& place) {
    count_work(merge_work(a, b), place);
    return merged_schemas(a, b, place);
  }

  NodePointer value(const OrderedJson& schema, const std::string& place, int depth) {
    count_schema(place);
    if (depth > kDeepestSchema) {
      bad_input("{}: the schema nests or refers to itself through allOf deeper than {} levels", place,
                kDeepestSchema);
    }
    if (schema.is_boolean()) return schema.get<bool>() ? any() : choice_node({});
    if (!schema.is_object()) bad_input("{}: a schema should be an object, true or false", place);
    check_keywords(schema, place);
    if (schema.contains("$ref")) return referred(schema, place, depth);
    // Alternatives first: two lists of them that both hold are one beside the other in an allOf.
    for (const char* const keyword : {"anyOf", "oneOf", "allOf"}) {
      if (schema.contains(keyword)) return combined(schema, keyword, place, depth);
    }
    if (const auto nullable = schema.find("nullable"); nullable != schema.end()) {
      if (!nullable->is_boolean()) bad_input("{}: nullable should be true or false", place);
      count_copy(schema, place);
      OrderedJson rest = schema;
      rest.erase("nullable");
      const NodePointer node = value(rest, place, depth + 1);
      return nullable->get<bool>() ? choice_node({node, text_node("null")}) : node;
    }
    if (schema.contains("enum") || schema.contains("const")) return listed(schema, place);
    return typed(schema, place, depth);
  }

  void check_keywords(const OrderedJson& schema, const std::string& place) const {
    constexpr std::string_view kOthers[] = {"type",  "enum",  "const", "anyOf",
                                            "oneOf", "allOf", "$ref",  "nullable"};
    for (const auto& [keyword, unused] : schema.items()) {
      bool known = is_annotation(keyword) ||
                   std::find(std::begin(kOthers), std::end(kOthers), keyword) != std::end(kOthers);
      for (const TypeKeywords& type : type_keywords()) {
        known =
            known || std::find(type.keywords.begin(), type.keywords.end(), keyword) != type.keywords.end();
      }
      if (!known) {
        bad_input("{}: the keyword {} is not possible; docs/structure.md lists those that are", place,
                  printable(keyword));
      }
    }
  }

  NodePointer referred(const OrderedJson& schema, const std::string& place, int depth) {
    const OrderedJson& target = resolve(schema["$ref"], place);
    if (schema.size() > 1) count_copy(schema, place);
    OrderedJson rest = OrderedJson::object();
    for (const auto& [keyword, part] : schema.items()) {
      if (keyword != "$ref" && !is_annotation(keyword)) rest[keyword] = part;
    }
    const auto target_place = schema["$ref"].get<std::string>();
    if (rest.empty()) return reference_node(rule_of(target_place, target));
    return value(merged(target, rest, place), place, depth + 1);
  }

  /// The value of a schema that holds together with those of allOf, or with one of those of anyOf or oneOf.
  NodePointer combined(const OrderedJson& schema, const char* keyword, const std::string& place, int depth) {
    const OrderedJson& list = schema[keyword];
    const std::string list_place = place + "/" + keyword;
    if (!list.is_array() || list.empty()) bad_input("{}: should be a list of schemas", list_place);
    OrderedJson rest = OrderedJson::object();
    count_copy(schema, place);
    for (const auto& [name, part] : schema.items()) {
      if (name != keyword && !is_annotation(name)) rest[name] = part;
    }
    if (std::string_view(keyword) == "allOf") {
      for (const OrderedJson& each : list) {
        count_schema(list_place);
        rest = merged(rest, unfolded(each, list_place), list_place);
      }
      return value(rest, place, depth + 1);
    }
    std::vector<NodePointer> choices;
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string own_place = list_place + "/" + std::to_string(i);
      if (rest.empty()) {
        choices.push_back(value(list[i], own_place, depth + 1));
      } else {
        choices.push_back(value(merged(rest, unfolded(list[i], own_place), own_place), own_place, depth + 1));
      }
    }
    return choice_node(std::move(choices));
  }

  /// A schema with what its $ref means in place of it, as far as that leads on to others.
  OrderedJson unfolded(const OrderedJson& schema, const std::string& place) {
    count_copy(schema, place);
    OrderedJson result = schema;
    for (int depth = 0; result.is_object() && result.contains("$ref"); ++depth) {
      count_schema(place);
      if (depth > kDeepestSchema) bad_input("{}: the references lead in a circle", place);
      const OrderedJson& target = resolve(result["$ref"], place);
      result.erase("$ref");
      result = merged(target, result, place);
    }
    return result;
  }

  NodePointer listed(const OrderedJson& schema, const std::string& place) {
    for (const auto& [keyword, unused] : schema.items()) {
      if (is_annotation(keyword) || keyword == "enum" || keyword == "const" || keyword == "type") continue;
      bad_input("{}: {} is not possible beside enum or const; leave out the values that it rules out", place,
                printable(keyword));
    }
    OrderedJson values = OrderedJson::array();
    if (schema.contains("enum")) {
      values = schema["enum"];
      if (!values.is_array() || values.empty()) bad_input("{}: enum should be a list of values", place);
      if (schema.contains("const")) {
        const bool listed = std::find(values.begin(), values.end(), schema["const"]) != values.end();
        values = listed ? OrderedJson::array({schema["const"]}) : OrderedJson::array();
      }
    } else {
      values.push_back(schema["const"]);
    }
    const std::vector<std::string> types = schema_types(schema, place);
    std::vector<std::string> texts;
    for (const OrderedJson& each : values) {
      const std::string_view type = each.type_name();  // "number" for all numbers
      const bool whole = each.is_number_integer() ||
                         (each.is_number_float() && std::floor(each.get<double>()) == each.get<double>());
      if (among(types, type) || (each.is_number() && whole && among(types, "integer"))) {
        texts.push_back(dumped(each));
      }
    }
    if (texts.empty()) bad_input("{}: none of the values of enum or const is of the type", place);
    return texts_node(std::move(texts));
  }

  /// The values of one type or several. Without a type the keywords that are there say which are meant.
  NodePointer typed(const OrderedJson& schema, const std::string& place, int depth) {
    std::vector<std::string> types;
    if (schema.contains("type")) {
      types = schema_types(schema, place);
    } else {
      for (const TypeKeywords& each : type_keywords()) {
        const bool meant = std::any_of(each.keywords.begin(), each.keywords.end(),
                                       [&](std::string_view keyword) { return schema.contains(keyword); });
        if (meant) types.emplace_back(each.type);
      }
      if (types.empty()) return any();
    }
    std::vector<NodePointer> choices;
    for (const std::string& type : types) choices.push_back(of_type(type, schema, place, depth));
    return choice_node(std::move(choices));
  }

  NodePointer of_type(const std::string& type, const OrderedJson& schema, const std::string& place,
                      int depth) {
    if (type == "null") return text_node("null");
    if (type == "boolean") return texts_node({"true", "false"});
    if (type == "object") return object(schema, place, depth);
    if (type == "array") return array(schema, place, depth);
    if (type == "string") return string(schema, place);
    return number(schema, type == "integer", place);
  }

  std::optional<int64_t> count_of(const OrderedJson& schema, const char* keyword, const std::string& place) {
    const auto found = schema.find(keyword);
    if (found == schema.end()) return std::nullopt;
    const double number = found->is_number() ? found->get<double>() : -1;
    if (number < 0 || number > static_cast<double>(kLargestCount) || std::floor(number) != number) {
      bad_input("{}: {} should be a whole number from 0 to {}", place, keyword, kLargestCount);
    }
    return static_cast<int64_t>(number);
  }

  void check_order(std::optional<int64_t> least, std::optional<int64_t> most, const char* what,
                   const std::string& place) const {
    if (least && most && *least > *most) bad_input("{}: the least {} is above the most", place, what);
  }

  NodePointer string(const OrderedJson& schema, const std::string& place) {
    const auto least = count_of(schema, "minLength", place);
    const auto most = count_of(schema, "maxLength", place);
    check_order(least, most, "length", place);
    const auto pattern = schema.find("pattern");
    const auto format = schema.find("format");
    const int kinds =
        (pattern != schema.end() ? 1 : 0) + (format != schema.end() ? 1 : 0) + (least || most ? 1 : 0);
    if (kinds > 1) {
      bad_input("{}: only one of pattern, format and lengths is possible; put the lengths into the pattern",
                place);
    }
    if (pattern != schema.end()) {
      if (!pattern->is_string()) bad_input("{}: pattern should be a text", place);
      const auto& text = pattern->get_ref<const std::string&>();
      return sequence_node(
          {text_node("\""), regex_node(text, PatternUse::kInsideJsonString, place), text_node("\"")});
    }
    if (format != schema.end()) {
      const auto name = format->is_string() ? format->get<std::string>() : format->dump();
      const auto node = format_node(name);
      if (!node) {
        bad_input("{}: the format {} is not known; docs/structure.md lists those that are", place,
                  printable(name));
      }
      return *node;
    }
    return json_string_node(static_cast<int32_t>(least.value_or(0)), static_cast<int32_t>(most.value_or(-1)));
  }

  std::optional<DecimalBound> bound_of(const OrderedJson& schema, const char* keyword, bool exclusive,
                                       bool lower, const std::string& place) const {
    const auto found = schema.find(keyword);
    if (found == schema.end()) return std::nullopt;
    if (!found->is_number()) bad_input("{}: {} should be a number", place, keyword);
    const auto value = found->get<double>();
    if (std::fabs(value) >= kBeyondAllDigits) {
      if (lower == (value < 0)) return outermost_bound(lower);
      bad_input("{}: no number of at most {} digits is within {}", place, kMostDigits, keyword);
    }
    const std::optional<DecimalBound> bound = decimal_bound(value, exclusive);
    if (!bound) {
      bad_input("{}: {} should have at most {} digits behind the point", place, keyword, kMostDigits);
    }
    return bound;
  }

  /// The tighter one of two limits, of which one is exclusive.
  std::optional<DecimalBound> tighter(const OrderedJson& schema, const char* inclusive, const char* exclusive,
                                      bool lower, const std::string& place) const {
    const auto a = bound_of(schema, inclusive, false, lower, place);
    const auto b = bound_of(schema, exclusive, true, lower, place);
    if (!a || !b) return a ? a : b;
    const auto first = schema[inclusive].get<double>();
    const auto second = schema[exclusive].get<double>();
    return (lower ? first > second : first < second) ? a : b;
  }

  static int64_t signed_whole(const DecimalBound& bound) {
    return bound.negative ? -bound.whole : bound.whole;
  }

  /// The least (or, if `upper`, the largest) integer within a limit.
  static int64_t integer_within(const DecimalBound& bound, bool upper) {
    const int64_t whole = signed_whole(bound);
    const int64_t inward = upper ? -1 : 1;
    if (bound.fraction.empty()) return bound.exclusive ? whole + inward : whole;
    // Cutting the fraction off has moved it towards zero.
    const bool moved_out = bound.negative == upper;
    return moved_out ? whole + inward : whole;
  }

  NodePointer number(const OrderedJson& schema, bool integer, const std::string& place) {
    const auto least = tighter(schema, "minimum", "exclusiveMinimum", true, place);
    const auto most = tighter(schema, "maximum", "exclusiveMaximum", false, place);
    const auto multiple = schema.find("multipleOf");
    if (multiple != schema.end()) {
      const double divisor = multiple->is_number() ? multiple->get<double>() : 0;
      if (divisor < 1 || divisor > 1e6 || std::floor(divisor) != divisor) {
        bad_input("{}: multipleOf is possible for whole numbers from 1 to 1000000", place);
      }
      if (divisor > 1) return multiples(static_cast<int64_t>(divisor), least, most, place);
      integer = true;
    }
    if (!integer) {
      NodePointer node = number_node(least, most);
      if (is_empty(least, most)) bad_input("{}: no number is within the limits", place);
      return node;
    }
    const auto [from, to] = integer_limits(least, most);
    if (from > to) bad_input("{}: no integer is within the limits", place);
    return integer_node(from, to);
  }

  static bool is_empty(const std::optional<DecimalBound>& least, const std::optional<DecimalBound>& most) {
    if (!least || !most) return false;
    const auto value_of = [](const DecimalBound& bound) {
      const double size = std::stod(std::to_string(bound.whole) + "." + bound.fraction + "0");
      return bound.negative ? -size : size;
    };
    const double from = value_of(*least);
    const double to = value_of(*most);
    return from > to || (from == to && (least->exclusive || most->exclusive));
  }

  static std::pair<int64_t, int64_t> integer_limits(const std::optional<DecimalBound>& least,
                                                    const std::optional<DecimalBound>& most) {
    return {least ? integer_within(*least, false) : -kLargestInteger,
            most ? integer_within(*most, true) : kLargestInteger};
  }

  NodePointer multiples(int64_t divisor, const std::optional<DecimalBound>& least,
                        const std::optional<DecimalBound>& most, const std::string& place) {
    constexpr int64_t kMostListed = 2000;
    constexpr int64_t kLargestDivisor = 100;
    if (least.value_or(outermost_bound(true)) == outermost_bound(true) &&
        most.value_or(outermost_bound(false)) == outermost_bound(false)) {
      if (divisor > kLargestDivisor) {
        bad_input("{}: multipleOf above {} needs a minimum and a maximum", place, kLargestDivisor);
      }
      return multiple_node(divisor);
    }
    const auto [from, to] = integer_limits(least, most);
    int64_t first = from / divisor * divisor;
    if (first < from) first += divisor;
    if (first > to) bad_input("{}: no multiple of {} is within the limits", place, divisor);
    if ((to - first) / divisor >= kMostListed) {
      bad_input("{}: more than {} multiples of {} are within the limits; make them narrower", place,
                kMostListed, divisor);
    }
    std::vector<std::string> texts;
    for (int64_t each = first; each <= to; each += divisor) texts.push_back(std::to_string(each));
    return texts_node(std::move(texts));
  }

  NodePointer array(const OrderedJson& schema, const std::string& place, int depth) {
    const int64_t least = count_of(schema, "minItems", place).value_or(0);
    const auto most = count_of(schema, "maxItems", place);
    check_order(least, most, "number of items", place);
    if (const auto unique = schema.find("uniqueItems");
        unique != schema.end() && (!unique->is_boolean() || unique->get<bool>())) {
      bad_input("{}: uniqueItems is not possible", place);
    }
    std::vector<NodePointer> first;
    if (const auto prefix = schema.find("prefixItems"); prefix != schema.end()) {
      if (!prefix->is_array() || prefix->size() > 100) {
        bad_input("{}: prefixItems should be a list of at most 100 schemas", place);
      }
      for (size_t i = 0; i < prefix->size(); ++i) {
        if (most && std::ssize(first) >= *most) break;
        first.push_back(value((*prefix)[i], place + "/prefixItems/" + std::to_string(i), depth + 1));
      }
    }
    const auto items = schema.find("items");
    const auto known = static_cast<int64_t>(first.size());
    // Behind named items there are others only where the schema says so, or asks for more than it names.
    const bool others = items != schema.end() || known == 0 || least > known;
    NodePointer rest = text_node("");
    const int64_t rest_least = std::max<int64_t>(least - known, 0);
    const int64_t rest_most = !others ? 0 : most ? *most - known : -1;
    if (rest_most != 0) {
      const NodePointer item = items != schema.end() ? value(*items, place + "/items", depth + 1) : any();
      const auto from = static_cast<int32_t>(rest_least);
      const auto to = static_cast<int32_t>(rest_most);
      rest = known == 0 ? repeat_node(item, from, to, kSeparator)
                        : repeat_node(sequence_node({text_node(kSeparator), item}), from, to);
    }
    for (int64_t i = known; i > 0; --i) {
      std::vector<NodePointer> parts;
      if (i > 1) parts.push_back(text_node(kSeparator));
      parts.push_back(first[static_cast<size_t>(i - 1)]);
      parts.push_back(rest);
      rest = sequence_node(std::move(parts));
      if (i > least) rest = repeat_node(rest, 0, 1);
    }
    return sequence_node({text_node("["), rest, text_node("]")});
  }

  std::vector<std::string> required_of(const OrderedJson& schema, const std::string& place) const {
    std::vector<std::string> names;
    const auto required = schema.find("required");
    if (required == schema.end()) return names;
    if (!required->is_array()) bad_input("{}: required should be a list of names", place);
    for (const OrderedJson& name : *required) {
      if (!name.is_string()) bad_input("{}: required should be a list of names", place);
      if (!among(names, name.get<std::string>())) names.push_back(name.get<std::string>());
    }
    if (names.size() > kMostNames) bad_input("{}: more than {} names are required", place, kMostNames);
    return names;
  }

  /// The schema of properties that are not named; nothing if there may be none.
  std::optional<OrderedJson> additional_of(const OrderedJson& schema) const {
    const auto found = schema.find("additionalProperties");
    if (found == schema.end()) {
      // Without a word about it, an object has others only where none are named.
      if (schema.contains("properties")) return std::nullopt;
      return true;
    }
    if (found->is_boolean() && !found->get<bool>()) return std::nullopt;
    return *found;
  }

  NodePointer object(const OrderedJson& schema, const std::string& place, int depth) {
    const std::vector<std::string> required = required_of(schema, place);
    const std::optional<OrderedJson> additional = additional_of(schema);
    Structure::Node members{.kind = Structure::Node::Kind::kMembers, .text = kSeparator};
    std::vector<std::string> names;
    const auto add = [&](const std::string& name, const NodePointer& node, bool needed) {
      names.push_back(name);
      members.parts.push_back(sequence_node({text_node(dumped(OrderedJson(name)) + ": "), node}));
      members.required.push_back(needed ? 1 : 0);
    };
    if (const auto properties = schema.find("properties"); properties != schema.end()) {
      if (!properties->is_object()) bad_input("{}: properties should be an object", place);
      if (properties->size() > kMostNames) bad_input("{}: more than {} properties", place, kMostNames);
      for (const auto& [name, part] : properties->items()) {
        add(name, value(part, place + "/properties/" + printable(name), depth + 1), among(required, name));
      }
    }
    NodePointer extra;
    if (additional) extra = value(*additional, place + "/additionalProperties", depth + 1);
    for (const std::string& name : required) {
      if (among(names, name)) continue;
      if (extra == nullptr) {
        bad_input("{}: the property {} is required, but not among the properties", place, printable(name));
      }
      add(name, extra, true);
    }
    if (extra != nullptr) {
      const NodePointer key = names.empty() ? json_string_node() : other_key_node(names);
      members.extra = sequence_node({key, text_node(": "), extra});
    }
    return sequence_node({text_node("{"), make_node(std::move(members)), text_node("}")});
  }

  const OrderedJson& root_;
  std::vector<NodePointer> rules_;  // null until read
  std::vector<std::string> places_;
  std::vector<const OrderedJson*> schemas_;
  std::map<std::string, int32_t> rule_numbers_;  // by place
  int32_t any_rule_ = -1;
  int count_ = 0;
  size_t copied_ = 0;
};

}  // namespace

NodePointer json_schema_node(std::string_view schema) {
  if (schema.size() > kLongestSchema) bad_input("the schema is longer than {} bytes", kLongestSchema);
  check_names(parse_json(schema, kDeepestSchema, "the schema"));  // checks depth and keys
  OrderedJson root;
  try {
    root = OrderedJson::parse(schema.begin(), schema.end());
  } catch (const OrderedJson::exception&) {
    bad_input("the schema is not JSON");
  }
  Structure::Node node = *SchemaReader(root).read();
  node.source = "schema:" + std::string(schema);
  NodePointer made = make_node(std::move(node));
  make_grammar(*made,
               [](std::string_view) { return std::nullopt; });  // finds what allows nothing, or too much
  return made;
}

NodePointer json_object_node() {
  return make_node({.kind = Structure::Node::Kind::kRules,
                    .texts = {"an object", "any value"},
                    .parts = {any_object_node(1), any_value_node(1)},
                    .source = "object"});
}

}  // namespace verbatim
