#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "templates/library.h"
#include "templates/operations.h"
#include "templates/text_operations.h"
#include "templates/written.h"

namespace verbatim::jinja {

namespace {

bool flag(const Arguments& arguments, size_t place, std::string_view name, bool otherwise = false) {
  const Value* const value = arguments.find(place, name);
  return value == nullptr ? otherwise : truth(*value);
}

/// What lies behind "a.b.0" of an item, as `map(attribute=...)` and others look it up.
Value looked_up(Machine& machine, Value value, const Value& path) {
  if (is<int64_t>(path)) return element_of(machine, value, path);
  std::string_view left = text_argument(machine, &path, "attribute").bytes();
  while (true) {
    const size_t dot = left.find('.');
    const std::string_view name = left.substr(0, dot);
    if (is<Undefined>(value)) return value;
    int64_t place = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), place);
    const bool number = error == std::errc() && end == name.data() + name.size();
    value = number ? element_of(machine, value, place)
                   : element_of(machine, value, machine.text(std::string(name), true));
    if (dot == std::string_view::npos) return value;
    left.remove_prefix(dot + 1);
  }
}

Arguments without_first(const Arguments& arguments, size_t count) {
  Arguments rest = arguments;
  const size_t gone = std::min(count, rest.positional.size());
  rest.positional.erase(rest.positional.begin(), rest.positional.begin() + static_cast<ptrdiff_t>(gone));
  return rest;
}

Value filter_trim(Machine& machine, const Value& input, const Arguments& arguments) {
  const TracedText text = written(machine, input);
  machine.scan(text.size());
  const Value* const what = arguments.find(0, "chars");
  const bool given = what != nullptr && !is<None>(*what);
  const TracedText* characters = given ? &text_argument(machine, what, "trim") : nullptr;
  if (given) machine.step(1 + characters->size() * text.size() / 256);
  return machine.text(stripped(text, characters, true, true));
}

Value filter_length(Machine& machine, const Value& input, const Arguments&) {
  if (const TracedText* text = text_of(input)) {
    machine.scan(text->size());
    return count_characters(text->bytes());
  }
  if (auto* const* list = std::get_if<List*>(&input)) return static_cast<int64_t>((*list)->items.size());
  if (auto* const* dict = std::get_if<Dict*>(&input)) return static_cast<int64_t>((*dict)->entries.size());
  if (is<Undefined>(input)) return int64_t{0};
  machine.fail("{} has no length", type_name(input));
}

Value filter_tojson(Machine& machine, const Value& input, const Arguments& arguments) {
  constexpr int64_t kWidestIndent = 64;
  JsonStyle style;
  const auto given = [&](size_t place, std::string_view name) -> const Value* {
    const Value* const value = arguments.find(place, name);
    return value == nullptr || is<None>(*value) ? nullptr : value;
  };
  // The places of Hugging Face's own filter, of which all arguments but the indent are written by name.
  style.ascii = flag(arguments, SIZE_MAX, "ensure_ascii");
  style.sorted = flag(arguments, SIZE_MAX, "sort_keys");
  const bool first_is_indent = !arguments.positional.empty() && is<int64_t>(arguments.positional[0]);
  if (const Value* indent = given(first_is_indent ? 0 : SIZE_MAX, "indent")) {
    style.indent = std::clamp<int64_t>(integer_argument(machine, indent, 0), 0, kWidestIndent);
    style.item_separator = ",";
  }
  if (const Value* separators = given(SIZE_MAX, "separators")) {
    const List& pair = *items_of(machine, *separators);
    if (pair.items.size() != 2) machine.fail("'separators' must be two strings");
    style.item_separator = text_argument(machine, &pair.items[0], "separators").bytes();
    style.key_separator = text_argument(machine, &pair.items[1], "separators").bytes();
  }
  return machine.text(written_json(machine, input, style));
}

Value filter_join(Machine& machine, const Value& input, const Arguments& arguments) {
  const Value* const separator = arguments.find(0, "d");
  const Value* const path = arguments.find(1, "attribute");
  const List* items = items_of(machine, input);
  if (path != nullptr) {
    List* const found = machine.list();
    for (const Value& item : items->items) machine.append(*found, looked_up(machine, item, *path));
    items = found;
  }
  return joined(machine, separator == nullptr ? TracedText() : written(machine, *separator), *items);
}

template <LetterCase kCase>
Value filter_case(Machine& machine, const Value& input, const Arguments&) {
  return machine.text(in_case(machine, written(machine, input), kCase));
}

Value filter_default(Machine&, const Value& input, const Arguments& arguments) {
  const bool lacks = is<Undefined>(input) || (flag(arguments, 1, "boolean") && !truth(input));
  if (!lacks) return input;
  const Value* const value = arguments.find(0, "default_value");
  return value == nullptr ? Value(make_text("", true)) : *value;
}

Value filter_list(Machine& machine, const Value& input, const Arguments&) {
  const List& items = *items_of(machine, input);
  List* const list = machine.list(items.items);
  list->from_data = items.from_data;
  return list;
}

Value filter_map(Machine& machine, const Value& input, const Arguments& arguments) {
  const Value* const path = arguments.find(SIZE_MAX, "attribute");
  const Value* const otherwise = arguments.find(SIZE_MAX, "default");
  const List& items = *items_of(machine, input);
  List* const results = machine.list();
  results->from_data = items.from_data;
  Filter filter = nullptr;
  Arguments rest;
  if (path == nullptr) {
    const std::string& name = text_argument(machine, arguments.find(0, "filter"), "map").bytes();
    filter = find_filter(name);
    if (filter == nullptr) machine.fail("'map' names no filter");
    rest = without_first(arguments, 1);
  }
  const Machine::Depth inside(machine);
  for (size_t i = 0; i < items.items.size(); ++i) {
    const Value item = items.items[i];
    Value result = filter != nullptr ? filter(machine, item, rest) : looked_up(machine, item, *path);
    if (is<Undefined>(result) && otherwise != nullptr) result = *otherwise;
    machine.append(*results, std::move(result));
  }
  return results;
}

template <bool kByAttribute, bool kKeeps>
Value filter_select(Machine& machine, const Value& input, const Arguments& arguments) {
  constexpr size_t kFirst = kByAttribute ? 1 : 0;
  const Value* const path = kByAttribute ? arguments.find(0, "attribute") : nullptr;
  if (kByAttribute && path == nullptr) machine.fail("an attribute to select by is missing");
  Test test = nullptr;
  if (arguments.positional.size() > kFirst) {
    test = find_test(text_argument(machine, &arguments.positional[kFirst], "select").bytes());
    if (test == nullptr) machine.fail("there is no such test to select by");
  }
  const Arguments rest = without_first(arguments, kFirst + 1);
  const List& items = *items_of(machine, input);
  List* const results = machine.list();
  results->from_data = items.from_data;
  for (size_t i = 0; i < items.items.size(); ++i) {
    machine.step();
    const Value item = items.items[i];
    const Value looked = kByAttribute ? looked_up(machine, item, *path) : item;
    const bool holds = test != nullptr ? test(machine, looked, rest) : truth(looked);
    if (holds == kKeeps) machine.append(*results, item);
  }
  return results;
}

template <bool kFirst>
Value filter_end(Machine& machine, const Value& input, const Arguments&) {
  const List& items = *items_of(machine, input);
  if (items.items.empty()) return {};
  return kFirst ? items.items.front() : items.items.back();
}

Value filter_replace(Machine& machine, const Value& input, const Arguments& arguments) {
  const TracedText text = written(machine, input);
  machine.scan(text.size());
  return machine.text(replaced(machine, text, text_argument(machine, arguments.find(0, "old"), "replace"),
                               text_argument(machine, arguments.find(1, "new"), "replace"),
                               integer_argument(machine, arguments.find(2, "count"), -1)));
}

Value filter_string(Machine& machine, const Value& input, const Arguments&) {
  return machine.text(written(machine, input));
}

Value filter_same(Machine&, const Value& input, const Arguments&) {
  return input;
}

/// A text as a number; nothing if it is none.
std::optional<double> number_in(const Value& value) {
  if (is_number(value)) return as_double(value);
  const TracedText* text = text_of(value);
  if (text == nullptr) return std::nullopt;
  const TracedText bare = stripped(*text, nullptr, true, true);
  std::string_view bytes = bare.bytes();
  if (bytes.starts_with('+')) bytes.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), number);
  if (error != std::errc() || end != bytes.data() + bytes.size()) return std::nullopt;
  return number;
}

Value filter_int(Machine& machine, const Value& input, const Arguments& arguments) {
  constexpr double kLargest = 9.0e18;
  if (is<int64_t>(input)) return input;
  if (const TracedText* text = text_of(input)) {
    machine.scan(text->size());
    const TracedText bare = stripped(*text, nullptr, true, true);
    int64_t whole = 0;
    const char* const end = bare.bytes().data() + bare.size();
    const auto [stop, error] = std::from_chars(bare.bytes().data(), end, whole);
    if (error == std::errc() && stop == end) return whole;
  }
  const std::optional<double> number = number_in(input);
  if (number && std::abs(*number) < kLargest) return static_cast<int64_t>(*number);
  const Value* const otherwise = arguments.find(0, "default");
  return otherwise == nullptr ? Value(int64_t{0}) : *otherwise;
}

Value filter_float(Machine& machine, const Value& input, const Arguments& arguments) {
  if (const TracedText* text = text_of(input)) machine.scan(text->size());
  if (const std::optional<double> number = number_in(input)) return *number;
  const Value* const otherwise = arguments.find(0, "default");
  return otherwise == nullptr ? Value(0.0) : *otherwise;
}

Value filter_abs(Machine& machine, const Value& input, const Arguments&) {
  if (!is_number(input)) machine.fail("{} has no absolute value", type_name(input));
  if (const auto* number = std::get_if<double>(&input)) return std::abs(*number);
  return less(machine, input, int64_t{0}) ? negate(machine, input)
                                          : Value(integer_argument(machine, &input, 0));
}

Value filter_round(Machine& machine, const Value& input, const Arguments& arguments) {
  constexpr int64_t kMostDigits = 15;
  if (!is_number(input)) machine.fail("{} cannot be rounded", type_name(input));
  const int64_t digits =
      std::clamp(integer_argument(machine, arguments.find(0, "precision"), 0), -kMostDigits, kMostDigits);
  const Value* const method = arguments.find(1, "method");
  const std::string how = method == nullptr ? "common" : text_argument(machine, method, "round").bytes();
  const double scale = std::pow(10.0, static_cast<double>(digits));
  const double scaled = as_double(input) * scale;
  if (how == "ceil") return std::ceil(scaled) / scale;
  if (how == "floor") return std::floor(scaled) / scale;
  return std::nearbyint(scaled) / scale;
}

/// What items are compared by: themselves or an attribute, texts without regard to case unless that is asked
/// for.
Value sort_key(Machine& machine, const Value& item, const Value* path, bool exact_case) {
  const Value key = path == nullptr || is<None>(*path) ? item : looked_up(machine, item, *path);
  const TracedText* text = text_of(key);
  if (exact_case || text == nullptr) return key;
  return machine.text(in_case(machine, *text, LetterCase::kLower));
}

std::vector<Value> sorted_by(Machine& machine, const std::vector<Value>& items,
                             const std::vector<Value>& keys, bool reverse) {
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return reverse ? less(machine, keys[b], keys[a]) : less(machine, keys[a], keys[b]);
  });
  std::vector<Value> sorted;
  for (const size_t i : order) sorted.push_back(items[i]);
  return sorted;
}

Value filter_sort(Machine& machine, const Value& input, const Arguments& arguments) {
  const List& items = *items_of(machine, input);
  const bool exact = flag(arguments, 1, "case_sensitive");
  std::vector<Value> keys;
  machine.take(items.items.size() * sizeof(Value));
  for (const Value& item : items.items) {
    keys.push_back(sort_key(machine, item, arguments.find(2, "attribute"), exact));
  }
  List* const list = machine.list(sorted_by(machine, items.items, keys, flag(arguments, 0, "reverse")));
  list->from_data = items.from_data;
  return list;
}

Value filter_dictsort(Machine& machine, const Value& input, const Arguments& arguments) {
  auto* const* dict = std::get_if<Dict*>(&input);
  if (dict == nullptr) machine.fail("'dictsort' wants a dictionary");
  const Value* const by = arguments.find(1, "by");
  const bool by_value = by != nullptr && text_argument(machine, by, "dictsort").bytes() == "value";
  std::vector<Value> keys;
  std::vector<Value> pairs;
  for (const auto& [key, value] : (*dict)->entries) {
    keys.push_back(sort_key(machine, by_value ? value : key, nullptr, flag(arguments, 0, "case_sensitive")));
    pairs.emplace_back(machine.list({key, value}, true));
  }
  List* const list = machine.list(sorted_by(machine, pairs, keys, flag(arguments, 2, "reverse")));
  list->from_data = (*dict)->from_data;
  return list;
}

Value filter_unique(Machine& machine, const Value& input, const Arguments& arguments) {
  const List& items = *items_of(machine, input);
  const bool exact = flag(arguments, 0, "case_sensitive");
  std::vector<Value> seen;
  List* const results = machine.list();
  results->from_data = items.from_data;
  for (const Value& item : items.items) {
    const Value key = sort_key(machine, item, arguments.find(1, "attribute"), exact);
    const auto same = [&](const Value& other) { return equal(machine, other, key); };
    if (std::any_of(seen.begin(), seen.end(), same)) continue;
    seen.push_back(key);
    machine.append(*results, item);
  }
  return results;
}

Value filter_items(Machine& machine, const Value& input, const Arguments&) {
  if (is<Undefined>(input)) return machine.list();
  auto* const* dict = std::get_if<Dict*>(&input);
  if (dict == nullptr) machine.fail("'items' wants a dictionary where {} is", type_name(input));
  return call_method(machine, input, "items", {});
}

Value filter_indent(Machine& machine, const Value& input, const Arguments& arguments) {
  constexpr int64_t kWidest = 256;
  const Value* const width = arguments.find(0, "width");
  TracedText indent;
  if (width != nullptr && is<TextPointer>(*width)) {
    indent = *text_of(*width);
  } else {
    const int64_t spaces = std::clamp<int64_t>(integer_argument(machine, width, 4), 0, kWidest);
    indent = TracedText(std::string(static_cast<size_t>(spaces), ' '), true);
  }
  const TracedText text = written(machine, input);
  const auto lines = static_cast<size_t>(std::count(text.bytes().begin(), text.bytes().end(), '\n')) + 1;
  machine.scan(text.size());
  machine.step(lines);
  if (!indent.empty() && lines > (size_t{1} << 40) / indent.size()) machine.fail("too much is indented");
  machine.check_length(text.size() + lines * indent.size());
  return machine.text(indented(text, indent, flag(arguments, 1, "first"), flag(arguments, 2, "blank")));
}

Value filter_reverse(Machine& machine, const Value& input, const Arguments&) {
  if (is<TextPointer>(input)) return slice_of(machine, input, None{}, None{}, int64_t{-1});
  const List& items = *items_of(machine, input);
  List* const list = machine.list(std::vector<Value>(items.items.rbegin(), items.items.rend()));
  list->from_data = items.from_data;
  return list;
}

template <bool kLargest>
Value filter_extreme(Machine& machine, const Value& input, const Arguments& arguments) {
  const List& items = *items_of(machine, input);
  const Value* best = nullptr;
  Value best_key;
  for (const Value& item : items.items) {
    const Value key =
        sort_key(machine, item, arguments.find(1, "attribute"), flag(arguments, 0, "case_sensitive"));
    const bool better =
        best == nullptr || (kLargest ? less(machine, best_key, key) : less(machine, key, best_key));
    if (!better) continue;
    best = &item;
    best_key = key;
  }
  return best == nullptr ? Value() : *best;
}

Value filter_sum(Machine& machine, const Value& input, const Arguments& arguments) {
  const Value* const path = arguments.find(0, "attribute");
  const Value* const start = arguments.find(1, "start");
  Value sum = start == nullptr ? Value(int64_t{0}) : *start;
  for (const Value& item : items_of(machine, input)->items) {
    const bool itself = path == nullptr || is<None>(*path);
    sum = operate(machine, Operator::kAdd, sum, itself ? item : looked_up(machine, item, *path));
  }
  return sum;
}

Value filter_attr(Machine& machine, const Value& input, const Arguments& arguments) {
  return attribute_of(machine, input, text_argument(machine, arguments.find(0, "name"), "attr").bytes());
}

Value filter_format(Machine& machine, const Value& input, const Arguments& arguments) {
  return machine.text(percent_formatted(machine, text_argument(machine, &input, "format"), arguments));
}

Value filter_escape(Machine& machine, const Value& input, const Arguments&) {
  TracedText text = written(machine, input);
  static constexpr std::array<std::pair<const char*, const char*>, 5> kEscapes = {
      {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"'", "&#39;"}, {"\"", "&#34;"}}};
  for (const auto& [character, escape] : kEscapes) {
    text = replaced(machine, text, TracedText(character, true), TracedText(escape, true), -1);
  }
  return machine.text(std::move(text));
}

Value filter_wordcount(Machine& machine, const Value& input, const Arguments&) {
  const TracedText text = written(machine, input);
  return static_cast<int64_t>(split(machine, text, nullptr, -1, false)->items.size());
}

const std::unordered_map<std::string_view, Filter>& filters() {
  static const std::unordered_map<std::string_view, Filter> kFilters = {
      {"trim", filter_trim},
      {"length", filter_length},
      {"count", filter_length},
      {"tojson", filter_tojson},
      {"join", filter_join},
      {"upper", filter_case<LetterCase::kUpper>},
      {"lower", filter_case<LetterCase::kLower>},
      {"title", filter_case<LetterCase::kTitle>},
      {"capitalize", filter_case<LetterCase::kCapitalize>},
      {"default", filter_default},
      {"d", filter_default},
      {"list", filter_list},
      {"map", filter_map},
      {"select", filter_select<false, true>},
      {"reject", filter_select<false, false>},
      {"selectattr", filter_select<true, true>},
      {"rejectattr", filter_select<true, false>},
      {"first", filter_end<true>},
      {"last", filter_end<false>},
      {"replace", filter_replace},
      {"string", filter_string},
      {"safe", filter_same},
      {"int", filter_int},
      {"float", filter_float},
      {"abs", filter_abs},
      {"round", filter_round},
      {"sort", filter_sort},
      {"dictsort", filter_dictsort},
      {"unique", filter_unique},
      {"items", filter_items},
      {"indent", filter_indent},
      {"reverse", filter_reverse},
      {"min", filter_extreme<false>},
      {"max", filter_extreme<true>},
      {"sum", filter_sum},
      {"attr", filter_attr},
      {"format", filter_format},
      {"escape", filter_escape},
      {"e", filter_escape},
      {"wordcount", filter_wordcount},
  };
  return kFilters;
}

}  // namespace

Filter find_filter(std::string_view name) {
  const auto found = filters().find(name);
  return found == filters().end() ? nullptr : found->second;
}

}  // namespace verbatim::jinja
