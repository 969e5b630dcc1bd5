#include <algorithm>
#include <array>

#include "base/printable.h"
#include "templates/library.h"
#include "templates/operations.h"
#include "templates/written.h"

namespace verbatim::jinja {

namespace {

constexpr std::array<std::string_view, 5> kFunctions = {"range", "namespace", "dict", "raise_exception",
                                                        "strftime_now"};

Value range(Machine& machine, const Arguments& arguments) {
  check_count(machine, "range", arguments, 1, 3);
  const bool one = arguments.positional.size() < 2;
  const auto at = [&](size_t place) { return arguments.find(place, ""); };
  const int64_t begin = one ? 0 : integer_argument(machine, at(0), 0);
  const int64_t end = integer_argument(machine, at(one ? 0 : 1), 0);
  const int64_t step = integer_argument(machine, at(2), 1);
  if (step == 0) machine.fail("'range' wants a step other than zero");
  List* const list = machine.list();
  for (int64_t i = begin; step > 0 ? i < end : i > end;) {
    if (std::ssize(list->items) >= kLongestRange)
      machine.fail("'range' gives more than {} numbers", kLongestRange);
    machine.append(*list, i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return list;
}

Value dictionary(Machine& machine, const Arguments& arguments, bool is_namespace) {
  Dict* const dict = machine.dict();
  dict->is_namespace = is_namespace;
  for (const Value& other : arguments.positional) {
    if (auto* const* more = std::get_if<Dict*>(&other)) {
      for (const auto& [key, value] : (*more)->entries) machine.set(*dict, key, value);
      continue;
    }
    for (const Value& pair : items_of(machine, other)->items) {
      const List& two = *items_of(machine, pair);
      if (two.items.size() != 2) machine.fail("a dictionary is made of pairs");
      machine.set(*dict, two.items[0], two.items[1]);
    }
  }
  for (const auto& [name, value] : arguments.named) {
    machine.set(*dict, machine.text(std::string(name), true), value);
  }
  return dict;
}

Value formatted_time(Machine& machine, const Arguments& arguments) {
  constexpr size_t kLongestFormat = 256;
  constexpr size_t kLongestTime = 4096;
  const std::string& format = text_argument(machine, arguments.find(0, "format"), "strftime_now").bytes();
  if (format.size() > kLongestFormat) machine.fail("'strftime_now' was given a format that is too long");
  const std::time_t now = machine.now();
  std::tm local{};
  localtime_r(&now, &local);
  // The space tells an empty time from one that did not fit.
  const std::string spaced = " " + format.substr(0, format.find('\0'));
  std::string text(kLongestTime, '\0');
  text.resize(std::strftime(text.data(), text.size(), spaced.c_str(), &local));
  if (text.empty()) machine.fail("'strftime_now' cannot write the time in its format");
  return machine.text(text.substr(1),
                      arguments.find(0, "format") == nullptr ||
                          text_argument(machine, arguments.find(0, "format"), "").from_template());
}

}  // namespace

std::string_view find_function(std::string_view name) {
  const auto found = std::find(kFunctions.begin(), kFunctions.end(), name);
  return found == kFunctions.end() ? std::string_view() : *found;
}

Value call_function(Machine& machine, std::string_view name, const Arguments& arguments) {
  if (name == "range") return range(machine, arguments);
  if (name == "namespace") return dictionary(machine, arguments, true);
  if (name == "dict") return dictionary(machine, arguments, false);
  if (name == "strftime_now") return formatted_time(machine, arguments);
  check_count(machine, name, arguments, 0, 1);
  std::string message = arguments.positional.empty() ? "" : written(machine, arguments.positional[0]).bytes();
  std::replace(message.begin(), message.end(), '\n', ' ');
  bad_input("the chat template refuses the conversation: {}", message.substr(0, 1000));
}

}  // namespace verbatim::jinja
