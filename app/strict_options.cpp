#include "strict_options.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "fail.h"
#include "verbatim/text.h"

namespace verbatim::app {

namespace {

constexpr size_t kLongestEcho = 80;

enum class Written { kWell, kWrongly, kTooLarge };

template <typename Number>
Written read_number(const std::string& text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) return Written::kWrongly;
  if (error == std::errc::result_out_of_range) return Written::kTooLarge;
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(value)) return Written::kWrongly;
  }
  return Written::kWell;
}

/// What is wrong with the text of a number, or nothing.
template <typename Number>
std::string mistake_in(const std::string& text, const char* expected) {
  const Written written = read_number<Number>(text);
  if (written == Written::kWell) return "";
  const std::string echo = shown(text, kLongestEcho);
  if (written == Written::kTooLarge) return fmt::format("{} is beyond any value that it can have", echo);
  return fmt::format("\"{}\" should be {}", echo, expected);
}

std::string integer_mistake(const std::string& text) {
  return mistake_in<int64_t>(text, "a whole number, such as 40");
}
std::string natural_mistake(const std::string& text) {
  return mistake_in<uint64_t>(text, "a whole number from 0, such as 40");
}
std::string number_mistake(const std::string& text) {
  return mistake_in<double>(text, "a number, such as 0.8");
}

/// An empty prompt is refused by the command, which knows why; an empty system text is none, and an empty
/// text to turn into tokens has none.
bool may_be_empty(const CLI::Option& option) {
  return option.check_name("TEXT") || option.check_lname("prompt") || option.check_lname("system") ||
         option.check_lname("stop");
}

void make_strict(CLI::Option& option) {
  if (option.get_expected_max() == 0) return;  // a flag
  const std::string type = option.get_type_name();
  // In front of the other checks, which convert as the library does.
  const auto check = [&option](std::string (*mistake)(const std::string&)) {
    option.transform(CLI::Validator(
        [mistake](std::string& text) { return text.empty() ? "the value is empty" : mistake(text); }, ""));
  };
  if (type.starts_with("INT")) {
    check(integer_mistake);
  } else if (type.starts_with("UINT")) {
    check(natural_mistake);
  } else if (type.starts_with("FLOAT")) {
    check(number_mistake);
  } else if (!may_be_empty(option)) {
    check([](const std::string&) { return std::string(); });
  }
}

bool has_empty_item(std::string_view list) {
  return list.empty() || list.front() == ',' || list.back() == ',' ||
         list.find(",,") != std::string_view::npos;
}

}  // namespace

void make_strict(CLI::App& program) {
  for (CLI::Option* const option : program.get_options()) make_strict(*option);
  for (CLI::App* const command : program.get_subcommands({})) make_strict(*command);
}

void check_lists(const CLI::App& program, int argc, const char* const* argv) {
  const CLI::App* command = &program;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const auto chosen = command->get_subcommands(
        [&](const CLI::App* under) { return under->check_name(std::string(argument)); });
    if (!chosen.empty()) {
      command = chosen.front();
      continue;
    }
    const size_t equals = argument.find('=');
    if (!argument.starts_with("--") || (equals == std::string_view::npos && i + 1 == argc)) continue;
    const std::string name(argument.substr(0, equals));
    const CLI::Option* const option = command->get_option_no_throw(name);
    if (option == nullptr || option->get_delimiter() != ',') continue;
    const std::string_view list =
        equals == std::string_view::npos ? std::string_view(argv[i + 1]) : argument.substr(equals + 1);
    if (!has_empty_item(list)) continue;
    fail(ErrorKind::kUsage, "{}: \"{}\" should be a list with commas between its items, none of them empty",
         name, shown(list, kLongestEcho));
  }
}

}  // namespace verbatim::app
