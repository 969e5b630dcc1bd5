#include <algorithm>
#include <array>

#include "templates/library.h"
#include "templates/operations.h"
#include "templates/text_operations.h"
#include "templates/written.h"

namespace verbatim::jinja {

namespace {

constexpr std::array<std::string_view, 32> kTextMethods = {
    "strip",   "lstrip",  "rstrip",  "split",      "rsplit",       "replace",      "startswith", "endswith",
    "upper",   "lower",   "title",   "capitalize", "swapcase",     "join",         "format",     "find",
    "rfind",   "index",   "count",   "splitlines", "removeprefix", "removesuffix", "isdigit",    "isalpha",
    "isalnum", "isspace", "isupper", "islower",    "zfill",        "partition",    "rpartition", "isnumeric"};
constexpr std::array<std::string_view, 9> kDictMethods = {"items", "keys", "values",     "get",  "update",
                                                          "pop",   "copy", "setdefault", "clear"};
constexpr std::array<std::string_view, 10> kListMethods = {"append", "index",   "count", "extend", "insert",
                                                           "pop",    "reverse", "copy",  "clear",  "remove"};
constexpr std::array<std::string_view, 2> kLoopMethods = {"changed", "cycle"};

template <size_t kCount>
std::string_view find_in(const std::array<std::string_view, kCount>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? std::string_view() : *found;
}

/// Whether a text begins or ends with one of the texts in an argument.
bool has_end(Machine& machine, const std::string& text, const Value* ends, bool at_start) {
  if (ends == nullptr) machine.fail("a string to look for is missing");
  if (auto* const* list = std::get_if<List*>(ends)) {
    for (const Value& end : (*list)->items) {
      machine.step();
      if (is<TextPointer>(end) && has_end(machine, text, &end, at_start)) return true;
    }
    return false;
  }
  const std::string& end = text_argument(machine, ends, at_start ? "startswith" : "endswith").bytes();
  machine.scan(end.size());
  return at_start ? text.starts_with(end) : text.ends_with(end);
}

Value find_place(Machine& machine, const std::string& text, std::string_view name,
                 const Arguments& arguments) {
  const std::string& part = text_argument(machine, arguments.find(0, "sub"), name).bytes();
  const int64_t from = integer_argument(machine, arguments.find(1, "start"), 0);
  if (from < 0) machine.fail("'{}' wants a place that is not negative", name);
  machine.scan(text.size());
  size_t found = std::string::npos;
  if (name == "rfind") {
    const size_t least = offset_of_character(text, from);
    for (size_t at = find_text(text, part, least); at != std::string_view::npos;
         at = find_text(text, part, at + 1)) {
      machine.step();
      found = at;
    }
  } else {
    found = find_text(text, part, offset_of_character(text, from));
  }
  if (found == std::string::npos) {
    if (name == "index") machine.fail("a text was not found in another");
    return int64_t{-1};
  }
  return count_characters(std::string_view(text).substr(0, found));
}

Value count_parts(Machine& machine, const std::string& text, const Arguments& arguments) {
  const std::string& part = text_argument(machine, arguments.find(0, "sub"), "count").bytes();
  machine.scan(text.size());
  if (part.empty()) return count_characters(text) + 1;
  int64_t count = 0;
  for (size_t at = find_text(text, part); at != std::string_view::npos;
       at = find_text(text, part, at + part.size())) {
    machine.step();
    ++count;
  }
  return count;
}

/// The methods that ask whether all characters are of a class, for ASCII as in Python; other letters count as
/// letters without a case.
bool all_of_class(std::string_view text, std::string_view name) {
  if (text.empty()) return false;
  bool cased = false;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    const bool upper = c >= 'A' && c <= 'Z';
    const bool lower = c >= 'a' && c <= 'z';
    const bool other = static_cast<unsigned char>(c) >= 0x80;
    cased |= upper || lower;
    const bool space = c == ' ' || (c >= '\t' && c <= '\r');
    const bool fits = name == "isdigit" || name == "isnumeric" ? digit
                      : name == "isalpha"                      ? upper || lower || other
                      : name == "isalnum"                      ? digit || upper || lower || other
                      : name == "isspace"                      ? space
                      : name == "isupper"                      ? !lower
                                                               : !upper;
    if (!fits) return false;
  }
  return cased || (name != "isupper" && name != "islower");
}

Value partition(Machine& machine, const TracedText& text, const Arguments& arguments, bool from_right) {
  const TracedText& separator = text_argument(machine, arguments.find(0, "sep"), "partition");
  List* const parts = split(machine, text, &separator, 1, from_right);
  parts->tuple = true;
  if (parts->items.size() == 2) {
    parts->items.insert(parts->items.begin() + 1, machine.text(separator));
  } else {
    parts->items.insert(from_right ? parts->items.begin() : parts->items.end(), 2, machine.text({}));
  }
  return parts;
}

Value zero_filled(Machine& machine, const TracedText& text, const Arguments& arguments) {
  const int64_t width = std::min<int64_t>(integer_argument(machine, arguments.find(0, "width"), 0), 1024);
  const int64_t lacks = width - count_characters(text.bytes());
  const bool sign = !text.empty() && (text.bytes()[0] == '-' || text.bytes()[0] == '+');
  TracedText all = text.slice(0, sign ? 1 : 0);
  if (lacks > 0) all.append(std::string(static_cast<size_t>(lacks), '0'), true);
  all.append(text, sign ? 1 : 0, text.size());
  return machine.text(std::move(all));
}

Value call_text(Machine& machine, const TracedText& text, std::string_view name, const Arguments& arguments) {
  machine.scan(text.size());
  const std::string& bytes = text.bytes();
  const Value* const first = arguments.find(0, name.ends_with("split") ? "sep" : "chars");
  const auto given = [](const Value* value) { return value != nullptr && !is<None>(*value); };
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    const TracedText* what = given(first) ? &text_argument(machine, first, name) : nullptr;
    if (what != nullptr) machine.step(1 + what->size() * bytes.size() / 256);
    return machine.text(stripped(text, what, name != "rstrip", name != "lstrip"));
  }
  if (name == "split" || name == "rsplit") {
    const TracedText* separator = given(first) ? &text_argument(machine, first, name) : nullptr;
    return split(machine, text, separator, integer_argument(machine, arguments.find(1, "maxsplit"), -1),
                 name == "rsplit");
  }
  if (name == "replace") {
    return machine.text(replaced(machine, text, text_argument(machine, arguments.find(0, "old"), name),
                                 text_argument(machine, arguments.find(1, "new"), name),
                                 integer_argument(machine, arguments.find(2, "count"), -1)));
  }
  if (name == "startswith" || name == "endswith") {
    return has_end(machine, bytes, arguments.find(0, ""), name == "startswith");
  }
  if (name == "upper") return machine.text(in_case(machine, text, LetterCase::kUpper));
  if (name == "lower") return machine.text(in_case(machine, text, LetterCase::kLower));
  if (name == "title") return machine.text(in_case(machine, text, LetterCase::kTitle));
  if (name == "capitalize") return machine.text(in_case(machine, text, LetterCase::kCapitalize));
  if (name == "swapcase") return machine.text(in_case(machine, text, LetterCase::kSwap));
  if (name == "join") {
    check_count(machine, name, arguments, 1, 1);
    const Value* const parts = arguments.find(0, "iterable");
    if (parts == nullptr) machine.fail("'join' wants a list");
    return joined(machine, text, *items_of(machine, *parts));
  }
  if (name == "format") return machine.text(formatted(machine, text, arguments));
  if (name == "find" || name == "rfind" || name == "index")
    return find_place(machine, bytes, name, arguments);
  if (name == "count") return count_parts(machine, bytes, arguments);
  if (name == "splitlines") {
    const Value* keep = arguments.find(0, "keepends");
    return split_lines(machine, text, keep != nullptr && truth(*keep));
  }
  if (name == "removeprefix") {
    const size_t size = text_argument(machine, arguments.find(0, "prefix"), name).size();
    return machine.text(
        text.slice(has_end(machine, bytes, arguments.find(0, ""), true) ? size : 0, bytes.size()));
  }
  if (name == "removesuffix") {
    const size_t size = text_argument(machine, arguments.find(0, "suffix"), name).size();
    const bool ends = has_end(machine, bytes, arguments.find(0, ""), false);
    return machine.text(text.slice(0, bytes.size() - (ends ? size : 0)));
  }
  if (name == "zfill") return zero_filled(machine, text, arguments);
  if (name == "partition" || name == "rpartition")
    return partition(machine, text, arguments, name == "rpartition");
  return all_of_class(bytes, name);
}

Value call_dict(Machine& machine, Dict& dict, std::string_view name, const Arguments& arguments) {
  if (name == "get" || name == "setdefault" || name == "pop") {
    check_count(machine, name, arguments, 1, 2);
    const Value* const key = arguments.find(0, "key");
    const Value* const otherwise = arguments.find(1, "default");
    if (key == nullptr || is<List*>(*key) || is<Dict*>(*key)) machine.fail("'{}' wants a key", name);
    machine.step();
    const Value* const found = dict.find(*key);
    if (name == "pop") machine.fail("a dictionary cannot lose entries");
    if (found != nullptr) return *found;
    const Value value = otherwise == nullptr ? Value(None{}) : *otherwise;
    if (name == "setdefault") machine.set(dict, *key, value);
    return value;
  }
  if (name == "update") {
    for (const Value& other : arguments.positional) {
      auto* const* more = std::get_if<Dict*>(&other);
      if (more == nullptr) machine.fail("'update' wants a dictionary");
      if (*more == &dict) continue;
      for (const auto& [key, value] : (*more)->entries) machine.set(dict, key, value);
    }
    for (const auto& [key, value] : arguments.named) {
      machine.set(dict, machine.text(std::string(key), true), value);
    }
    return None{};
  }
  if (name == "clear") machine.fail("a dictionary cannot lose entries");
  check_count(machine, name, arguments, 0, 0);
  if (name == "copy") {
    Dict* const copy = machine.dict();
    copy->from_data = dict.from_data;
    for (const auto& [key, value] : dict.entries) machine.set(*copy, key, value);
    return copy;
  }
  List* const list = machine.list();
  list->from_data = dict.from_data;
  for (const auto& [key, value] : dict.entries) {
    if (name == "items") {
      machine.append(*list, machine.list({key, value}, true));
    } else {
      machine.append(*list, name == "keys" ? key : value);
    }
  }
  return list;
}

Value call_list(Machine& machine, List& list, std::string_view name, const Arguments& arguments) {
  const bool changes = name != "index" && name != "count" && name != "copy";
  if (changes && list.tuple) machine.fail("a tuple cannot be changed");
  machine.step(1 + list.items.size() / 16);
  if (name == "copy") {
    List* const copy = machine.list(list.items);
    copy->from_data = list.from_data;
    return copy;
  }
  if (name == "clear") {
    list.items.clear();
    return None{};
  }
  if (name == "reverse") {
    std::reverse(list.items.begin(), list.items.end());
    return None{};
  }
  if (name == "pop") {
    const int64_t count = std::ssize(list.items);
    int64_t at = integer_argument(machine, arguments.find(0, "index"), -1);
    if (at < 0) at += count;
    if (at < 0 || at >= count) machine.fail("'pop' finds nothing in the list");
    const Value value = list.items[static_cast<size_t>(at)];
    list.items.erase(list.items.begin() + at);
    return value;
  }
  const Value* const item = arguments.find(0, "");
  if (item == nullptr) machine.fail("'{}' wants an argument", name);
  if (name == "append") {
    machine.append(list, *item);
    return None{};
  }
  if (name == "extend") {
    const std::vector<Value> more = items_of(machine, *item)->items;
    for (const Value& value : more) machine.append(list, value);
    return None{};
  }
  if (name == "insert") {
    const int64_t count = std::ssize(list.items);
    int64_t at = integer_argument(machine, item, 0);
    at = at < 0 ? std::max<int64_t>(at + count, 0) : std::min(at, count);
    const Value* const value = arguments.find(1, "");
    if (value == nullptr) machine.fail("'insert' wants a place and a value");
    machine.append(list, None{});
    list.items.pop_back();
    list.items.insert(list.items.begin() + at, *value);
    return None{};
  }
  int64_t count = 0;
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (!equal(machine, list.items[i], *item)) continue;
    if (name == "index") return static_cast<int64_t>(i);
    if (name == "remove") {
      list.items.erase(list.items.begin() + static_cast<ptrdiff_t>(i));
      return None{};
    }
    ++count;
  }
  if (name != "count") machine.fail("'{}' finds nothing in the list", name);
  return count;
}

Value call_loop(Machine& machine, Loop& loop, std::string_view name, const Arguments& arguments) {
  if (name == "cycle") {
    if (arguments.positional.empty()) machine.fail("'cycle' wants values");
    return arguments.positional[loop.index % arguments.positional.size()];
  }
  const Value now = machine.list(arguments.positional, true);
  const bool changed = !loop.seen || !equal(machine, loop.last_seen, now);
  loop.seen = true;
  loop.last_seen = now;
  return changed;
}

}  // namespace

std::string_view find_method(const Value& self, std::string_view name) {
  if (is<TextPointer>(self)) return find_in(kTextMethods, name);
  if (is<List*>(self)) return find_in(kListMethods, name);
  if (is<Loop*>(self)) return find_in(kLoopMethods, name);
  auto* const* dict = std::get_if<Dict*>(&self);
  return dict == nullptr || (*dict)->is_namespace ? std::string_view() : find_in(kDictMethods, name);
}

Value call_method(Machine& machine, const Value& self, std::string_view name, const Arguments& arguments) {
  if (const TracedText* text = text_of(self)) return call_text(machine, *text, name, arguments);
  if (auto* const* dict = std::get_if<Dict*>(&self)) return call_dict(machine, **dict, name, arguments);
  if (auto* const* list = std::get_if<List*>(&self)) return call_list(machine, **list, name, arguments);
  return call_loop(machine, *std::get<Loop*>(self), name, arguments);
}

}  // namespace verbatim::jinja
