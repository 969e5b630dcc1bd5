#include "templates/operations.h"

#include <cmath>
#include <cstring>

#include "base/utf8.h"
#include "templates/written.h"

namespace verbatim::jinja {

namespace {

[[noreturn]] void no_operator(const Machine& machine, std::string_view what, const Value& a, const Value& b) {
  machine.fail("{} cannot be {} {}", type_name(a), what, type_name(b));
}

bool equal_at(Machine& machine, const Value& a, const Value& b, int32_t depth) {
  machine.step();
  if (depth > kDeepestValue) machine.fail("lists that nest too deeply are compared");
  if (is_number(a) && is_number(b)) {
    if (is<double>(a) || is<double>(b)) return as_double(a) == as_double(b);
    return integer_argument(machine, &a, 0) == integer_argument(machine, &b, 0);
  }
  if (a.index() != b.index()) return false;
  if (const TracedText* text = text_of(a)) {
    machine.scan(text->size());
    return text->bytes() == text_of(b)->bytes();
  }
  if (auto* const* list = std::get_if<List*>(&a)) {
    const List& x = **list;
    const List& y = *std::get<List*>(b);
    if (&x == &y) return true;
    if (x.tuple != y.tuple || x.items.size() != y.items.size()) return false;
    for (size_t i = 0; i < x.items.size(); ++i) {
      if (!equal_at(machine, x.items[i], y.items[i], depth + 1)) return false;
    }
    return true;
  }
  if (auto* const* dict = std::get_if<Dict*>(&a)) {
    const Dict& x = **dict;
    const Dict& y = *std::get<Dict*>(b);
    if (&x == &y) return true;
    if (x.is_namespace || y.is_namespace || x.entries.size() != y.entries.size()) return false;
    for (const auto& [key, value] : x.entries) {
      const Value* other = y.find(key);
      if (other == nullptr || !equal_at(machine, value, *other, depth + 1)) return false;
    }
    return true;
  }
  if (is<Callable*>(a)) return std::get<Callable*>(a) == std::get<Callable*>(b);
  return !is<Loop*>(a) || std::get<Loop*>(a) == std::get<Loop*>(b);
}

bool less_at(Machine& machine, const Value& a, const Value& b, int32_t depth) {
  machine.step();
  if (depth > kDeepestValue) machine.fail("lists that nest too deeply are compared");
  if (is_number(a) && is_number(b)) {
    if (is<double>(a) || is<double>(b)) return as_double(a) < as_double(b);
    return integer_argument(machine, &a, 0) < integer_argument(machine, &b, 0);
  }
  if (is<TextPointer>(a) && is<TextPointer>(b)) {
    machine.scan(std::min(text_of(a)->size(), text_of(b)->size()));
    return text_of(a)->bytes() < text_of(b)->bytes();  // the order of UTF-8 is that of its characters
  }
  if (is<List*>(a) && is<List*>(b) && std::get<List*>(a)->tuple == std::get<List*>(b)->tuple) {
    const List& x = *std::get<List*>(a);
    const List& y = *std::get<List*>(b);
    for (size_t i = 0; i < std::min(x.items.size(), y.items.size()); ++i) {
      if (equal(machine, x.items[i], y.items[i])) continue;
      return less_at(machine, x.items[i], y.items[i], depth + 1);
    }
    return x.items.size() < y.items.size();
  }
  no_operator(machine, "compared with", a, b);
}

Value repeat(Machine& machine, const Value& what, int64_t times) {
  times = std::max<int64_t>(times, 0);
  if (const TracedText* text = text_of(what)) {
    if (!text->empty() && times > (int64_t{1} << 40) / static_cast<int64_t>(text->size())) {
      machine.fail("a text is repeated too often");
    }
    const size_t size = text->size() * static_cast<size_t>(times);
    machine.check_length(size);
    machine.step(text->empty() ? 1 : static_cast<size_t>(times));
    TracedText all;
    for (int64_t i = 0; i < times && !text->empty(); ++i) all.append(*text);
    return machine.text(std::move(all));
  }
  const List& list = *std::get<List*>(what);
  List* const all = machine.list(list.tuple);
  all->from_data = list.from_data;
  for (int64_t i = 0; i < times && !list.items.empty(); ++i) {
    for (const Value& item : list.items) machine.append(*all, item);
  }
  return all;
}

Value add(Machine& machine, const Value& a, const Value& b) {
  if (is<TextPointer>(a) && is<TextPointer>(b)) {
    machine.check_length(text_of(a)->size() + text_of(b)->size());
    machine.scan(text_of(a)->size() + text_of(b)->size());
    TracedText all = *text_of(a);
    all.append(*text_of(b));
    return machine.text(std::move(all));
  }
  if (is<List*>(a) && is<List*>(b) && std::get<List*>(a)->tuple == std::get<List*>(b)->tuple) {
    const List& left = *std::get<List*>(a);
    const List& right = *std::get<List*>(b);
    machine.step(left.items.size() + right.items.size());
    machine.take((left.items.size() + right.items.size()) * sizeof(Value));
    List* const all = machine.list(left.tuple);
    all->from_data = left.from_data || right.from_data;
    all->items = left.items;
    all->items.insert(all->items.end(), right.items.begin(), right.items.end());
    return all;
  }
  no_operator(machine, "added to", a, b);
}

int64_t floor_divide(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Value power(Machine& machine, int64_t base, int64_t exponent) {
  if (exponent < 0) return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  int64_t result = 1;
  if (base == 0 || base == 1) return exponent == 0 ? int64_t{1} : base;
  if (base == -1) return exponent % 2 == 0 ? int64_t{1} : int64_t{-1};
  for (int64_t i = 0; i < exponent; ++i) {
    if (__builtin_mul_overflow(result, base, &result)) machine.fail("a number is too large");
  }
  return result;
}

Value operate_integers(Machine& machine, Operator meaning, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  const bool divides =
      meaning == Operator::kDivide || meaning == Operator::kFloorDivide || meaning == Operator::kModulo;
  if (divides && b == 0) machine.fail("a division by zero");
  switch (meaning) {
    case Operator::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case Operator::kSubtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case Operator::kMultiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case Operator::kDivide:
      return static_cast<double>(a) / static_cast<double>(b);
    case Operator::kFloorDivide:
      if (b == -1) return operate_integers(machine, Operator::kSubtract, 0, a);
      return floor_divide(a, b);
    case Operator::kModulo:
      return b == -1 ? int64_t{0} : a - floor_divide(a, b) * b;
    default:
      return power(machine, a, b);
  }
  if (overflow) machine.fail("a number is too large");
  return result;
}

Value operate_numbers(Machine& machine, Operator meaning, double a, double b) {
  switch (meaning) {
    case Operator::kAdd:
      return a + b;
    case Operator::kSubtract:
      return a - b;
    case Operator::kMultiply:
      return a * b;
    case Operator::kPower:
      return std::pow(a, b);
    default:
      break;
  }
  if (b == 0) machine.fail("a division by zero");
  if (meaning == Operator::kDivide) return a / b;
  if (meaning == Operator::kFloorDivide) return std::floor(a / b);
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value loop_attribute(Machine& machine, const Loop& loop, std::string_view name) {
  const auto index = static_cast<int64_t>(loop.index);
  const auto count = static_cast<int64_t>(loop.items->items.size());
  if (name == "index") return index + 1;
  if (name == "index0") return index;
  if (name == "revindex") return count - index;
  if (name == "revindex0") return count - index - 1;
  if (name == "first") return index == 0;
  if (name == "last") return index + 1 == count;
  if (name == "length") return count;
  if (name == "depth") return loop.depth;
  if (name == "depth0") return loop.depth - 1;
  // The list may have become shorter since the loop began.
  if (name == "previtem") {
    return index > 0 && index - 1 < count ? loop.items->items[loop.index - 1] : Value();
  }
  if (name == "nextitem") return index + 1 < count ? loop.items->items[loop.index + 1] : Value();
  machine.fail("a loop has no '{}'", name);
}

Value method_of(Machine& machine, const Value& self, std::string_view own_name) {
  return machine.callable({.kind = Callable::Kind::kMethod, .name = own_name, .self = self});
}

/// Python's meaning of the bounds of a slice.
struct Bounds {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t step = 1;
};

Bounds bounds_of(Machine& machine, int64_t count, const Value& begin, const Value& end, const Value& step) {
  const auto given = [](const Value& value) { return !is<None>(value) && !is<Undefined>(value); };
  Bounds result;
  if (given(step)) result.step = integer_argument(machine, &step, 1);
  if (result.step == 0) machine.fail("a slice with a step of zero");
  const bool forward = result.step > 0;
  const auto bound = [&](const Value& value, int64_t otherwise) {
    if (!given(value)) return otherwise;
    int64_t at = integer_argument(machine, &value, 0);
    if (at < 0) at = at < -count ? -1 : at + count;
    if (at < 0) return forward ? int64_t{0} : int64_t{-1};
    return std::min(at, forward ? count : count - 1);
  };
  result.begin = bound(begin, forward ? 0 : count - 1);
  result.end = bound(end, forward ? count : -1);
  return result;
}

std::vector<int64_t> places_of(Machine& machine, const Bounds& bounds) {
  std::vector<int64_t> places;
  for (int64_t i = bounds.begin; bounds.step > 0 ? i < bounds.end : i > bounds.end;) {
    machine.step();
    places.push_back(i);
    if (__builtin_add_overflow(i, bounds.step, &i)) break;
  }
  return places;
}

Value slice_text(Machine& machine, const TracedText& text, const Value& begin, const Value& end,
                 const Value& step) {
  const std::string& bytes = text.bytes();
  machine.scan(bytes.size());
  const Bounds bounds = bounds_of(machine, count_characters(bytes), begin, end, step);
  if (bounds.step == 1) {
    if (bounds.end <= bounds.begin) return machine.text({});
    return machine.text(
        text.slice(offset_of_character(bytes, bounds.begin), offset_of_character(bytes, bounds.end)));
  }
  std::vector<size_t> offsets;
  machine.step(bytes.size() / 8);
  for (size_t i = 0; i < bytes.size(); i += utf8_length(bytes[i])) offsets.push_back(i);
  TracedText all;
  for (const int64_t place : places_of(machine, bounds)) {
    const size_t at = offsets[static_cast<size_t>(place)];
    all.append(text, at, at + utf8_length(bytes[at]));
  }
  return machine.text(std::move(all));
}

}  // namespace

bool equal(Machine& machine, const Value& a, const Value& b) {
  return equal_at(machine, a, b, 0);
}

bool less(Machine& machine, const Value& a, const Value& b) {
  return less_at(machine, a, b, 0);
}

bool contains(Machine& machine, const Value& whole, const Value& item) {
  if (is<Undefined>(whole)) return false;
  if (const TracedText* text = text_of(whole)) {
    const TracedText* part = text_of(item);
    if (part == nullptr) no_operator(machine, "looked for in", item, whole);
    machine.scan(text->size());
    return find_text(text->bytes(), part->bytes()) != std::string_view::npos;
  }
  if (auto* const* list = std::get_if<List*>(&whole)) {
    for (const Value& own : (*list)->items) {
      if (equal(machine, own, item)) return true;
    }
    return false;
  }
  if (auto* const* dict = std::get_if<Dict*>(&whole)) {
    machine.step((*dict)->entries.size() < 16 ? 1 : 2);
    return (*dict)->find(item) != nullptr;
  }
  no_operator(machine, "looked for in", item, whole);
}

Value operate(Machine& machine, Operator meaning, const Value& a, const Value& b) {
  machine.step();
  switch (meaning) {
    case Operator::kEqual:
      return equal(machine, a, b);
    case Operator::kUnequal:
      return !equal(machine, a, b);
    case Operator::kLess:
      return less(machine, a, b);
    case Operator::kGreater:
      return less(machine, b, a);
    case Operator::kLessOrEqual:
      return less(machine, a, b) || equal(machine, a, b);
    case Operator::kGreaterOrEqual:
      return less(machine, b, a) || equal(machine, a, b);
    case Operator::kIn:
      return contains(machine, b, a);
    case Operator::kNotIn:
      return !contains(machine, b, a);
    case Operator::kConcatenate: {
      TracedText all = written(machine, a);
      const TracedText more = written(machine, b);
      machine.check_length(all.size() + more.size());
      all.append(more);
      return machine.text(std::move(all));
    }
    default:
      break;
  }
  if (is_number(a) && is_number(b)) {
    if (is<double>(a) || is<double>(b)) return operate_numbers(machine, meaning, as_double(a), as_double(b));
    return operate_integers(machine, meaning, integer_argument(machine, &a, 0),
                            integer_argument(machine, &b, 0));
  }
  if (meaning == Operator::kAdd) return add(machine, a, b);
  const auto repeats = [](const Value& what, const Value& times) {
    return (is<TextPointer>(what) || is<List*>(what)) && is<int64_t>(times);
  };
  if (meaning == Operator::kMultiply && repeats(a, b)) return repeat(machine, a, std::get<int64_t>(b));
  if (meaning == Operator::kMultiply && repeats(b, a)) return repeat(machine, b, std::get<int64_t>(a));
  if (meaning == Operator::kModulo && is<TextPointer>(a)) {
    Arguments arguments;
    if (auto* const* list = std::get_if<List*>(&b); list != nullptr && (*list)->tuple) {
      arguments.positional = (*list)->items;
    } else {
      arguments.positional = {b};
    }
    return find_filter("format")(machine, a, arguments);
  }
  no_operator(machine, "calculated with", a, b);
}

Value negate(Machine& machine, const Value& value) {
  if (const auto* number = std::get_if<double>(&value)) return -*number;
  if (!is_number(value)) machine.fail("{} has no negative", type_name(value));
  return operate_integers(machine, Operator::kSubtract, 0, integer_argument(machine, &value, 0));
}

List* items_of(Machine& machine, const Value& value) {
  if (auto* const* list = std::get_if<List*>(&value)) return *list;
  List* const items = machine.list();
  if (is<Undefined>(value)) return items;
  if (auto* const* dict = std::get_if<Dict*>(&value); dict != nullptr && !(*dict)->is_namespace) {
    for (const auto& [key, entry] : (*dict)->entries) machine.append(*items, key);
    return items;
  }
  const TracedText* text = text_of(value);
  if (text == nullptr) machine.fail("{} cannot be looped over", type_name(value));
  const std::string& bytes = text->bytes();
  for (size_t i = 0; i < bytes.size();) {
    const size_t length = utf8_length(bytes[i]);
    machine.append(*items, machine.text(text->slice(i, i + length)));
    i += length;
  }
  return items;
}

Value attribute_of(Machine& machine, const Value& value, std::string_view name) {
  machine.step();
  if (is<Undefined>(value)) machine.fail("'{}' is wanted of something undefined", name);
  const std::string_view method = find_method(value, name);
  if (!method.empty()) return method_of(machine, value, method);
  if (auto* const* loop = std::get_if<Loop*>(&value)) return loop_attribute(machine, **loop, name);
  auto* const* dict = std::get_if<Dict*>(&value);
  const Value* found = dict == nullptr ? nullptr : (*dict)->find(name);
  return found == nullptr ? Value() : *found;
}

Value element_of(Machine& machine, const Value& value, const Value& key) {
  machine.step();
  if (is<Undefined>(value)) machine.fail("an element is wanted of something undefined");
  if (auto* const* dict = std::get_if<Dict*>(&value)) {
    if (is<List*>(key) || is<Dict*>(key)) return {};
    const Value* found = (*dict)->find(key);
    if (found != nullptr) return *found;
  }
  if (const auto* place = std::get_if<int64_t>(&key)) {
    const TracedText* text = text_of(value);
    auto* const* list = std::get_if<List*>(&value);
    if (text == nullptr && list == nullptr) return {};
    if (text != nullptr) machine.scan(text->size());
    const int64_t count =
        text != nullptr ? count_characters(text->bytes()) : static_cast<int64_t>((*list)->items.size());
    const int64_t at = *place < 0 ? *place + count : *place;
    if (at < 0 || at >= count) return {};
    if (list != nullptr) return (*list)->items[static_cast<size_t>(at)];
    const size_t offset = offset_of_character(text->bytes(), at);
    return machine.text(text->slice(offset, offset + utf8_length(text->bytes()[offset])));
  }
  const TracedText* name = text_of(key);
  const std::string_view method = name == nullptr ? std::string_view() : find_method(value, name->bytes());
  return method.empty() ? Value() : method_of(machine, value, method);
}

Value slice_of(Machine& machine, const Value& value, const Value& begin, const Value& end,
               const Value& step) {
  if (const TracedText* text = text_of(value)) return slice_text(machine, *text, begin, end, step);
  auto* const* list = std::get_if<List*>(&value);
  if (list == nullptr) machine.fail("{} has no parts", type_name(value));
  const List& all = **list;
  const Bounds bounds = bounds_of(machine, static_cast<int64_t>(all.items.size()), begin, end, step);
  List* const part = machine.list(all.tuple);
  part->from_data = all.from_data;
  for (const int64_t place : places_of(machine, bounds)) {
    machine.append(*part, all.items[static_cast<size_t>(place)]);
  }
  return part;
}

size_t find_text(std::string_view text, std::string_view part, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (part.empty()) return from;
  // Unlike std::string_view::find, this takes no more than linear time.
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

int64_t count_characters(std::string_view text) {
  int64_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0u) != 0x80u ? 1 : 0;
  return count;
}

size_t offset_of_character(std::string_view text, int64_t index) {
  size_t offset = 0;
  for (; index > 0 && offset < text.size(); --index) offset += utf8_length(text[offset]);
  return offset;
}

}  // namespace verbatim::jinja
