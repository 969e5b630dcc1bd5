#include "structure/json_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace verbatim {

namespace {

NodePointer digit(char first = '0', char last = '9') {
  return character_node({{static_cast<uint32_t>(first), static_cast<uint32_t>(last)}});
}

NodePointer digits(int32_t least, int32_t most) {
  return repeat_node(digit(), least, most);
}

NodePointer nothing() {
  return choice_node({});
}

NodePointer one_digit(char c) {
  return text_node(std::string(1, c));
}

/// Runs of as many digits as `least` that are, as numbers, at least that.
NodePointer digits_from(std::string_view least) {
  const auto left = static_cast<int32_t>(least.size());
  if (least.find_first_not_of('0') == std::string_view::npos) return digits(left, left);
  std::vector<NodePointer> choices = {sequence_node({one_digit(least[0]), digits_from(least.substr(1))})};
  if (least[0] < '9') {
    choices.push_back(
        sequence_node({digit(static_cast<char>(least[0] + 1), '9'), digits(left - 1, left - 1)}));
  }
  return choice_node(std::move(choices));
}

NodePointer digits_to(std::string_view most) {
  const auto left = static_cast<int32_t>(most.size());
  if (most.find_first_not_of('9') == std::string_view::npos) return digits(left, left);
  std::vector<NodePointer> choices = {sequence_node({one_digit(most[0]), digits_to(most.substr(1))})};
  if (most[0] > '0') {
    choices.push_back(
        sequence_node({digit('0', static_cast<char>(most[0] - 1)), digits(left - 1, left - 1)}));
  }
  return choice_node(std::move(choices));
}

/// Runs of digits from one number to another of the same length.
NodePointer digits_between(std::string_view least, std::string_view most) {
  if (least.empty()) return text_node("");
  if (least[0] == most[0]) {
    return sequence_node({one_digit(least[0]), digits_between(least.substr(1), most.substr(1))});
  }
  std::vector<NodePointer> choices = {sequence_node({one_digit(least[0]), digits_from(least.substr(1))}),
                                      sequence_node({one_digit(most[0]), digits_to(most.substr(1))})};
  if (least[0] + 1 < most[0]) {
    const auto left = static_cast<int32_t>(least.size()) - 1;
    choices.push_back(sequence_node(
        {digit(static_cast<char>(least[0] + 1), static_cast<char>(most[0] - 1)), digits(left, left)}));
  }
  return choice_node(std::move(choices));
}

/// Integers from `least` ≥ 0 to `most`.
NodePointer natural_node(int64_t least, int64_t most) {
  std::vector<NodePointer> choices;
  int64_t first = 0;
  for (int64_t last = 9; first <= most; first = last + 1, last = last * 10 + 9) {
    const int64_t from = std::max(least, first);
    const int64_t to = std::min(most, last);
    if (from <= to) choices.push_back(digits_between(std::to_string(from), std::to_string(to)));
  }
  return choice_node(std::move(choices));
}

/// Further digits of a fraction whose value is at least that of the digits `least`, which do not end in 0;
/// above it if `exclusive`.
NodePointer fraction_from(std::string_view least, bool exclusive) {
  if (least.empty()) {
    if (!exclusive) return digits(0, kMostDigits);
    return sequence_node(
        {repeat_node(one_digit('0'), 0, kMostDigits), digit('1', '9'), digits(0, kMostDigits)});
  }
  std::vector<NodePointer> choices = {
      sequence_node({one_digit(least[0]), fraction_from(least.substr(1), exclusive)})};
  if (least[0] < '9') {
    choices.push_back(sequence_node({digit(static_cast<char>(least[0] + 1), '9'), digits(0, kMostDigits)}));
  }
  return choice_node(std::move(choices));
}

/// The same for at most that. `some` says that there must be a digit.
NodePointer fraction_to(std::string_view most, bool exclusive, bool some) {
  if (most.empty()) return exclusive ? nothing() : repeat_node(one_digit('0'), some ? 1 : 0, kMostDigits);
  std::vector<NodePointer> choices = {
      sequence_node({one_digit(most[0]), fraction_to(most.substr(1), exclusive, false)})};
  if (most[0] > '0') {
    choices.push_back(sequence_node({digit('0', static_cast<char>(most[0] - 1)), digits(0, kMostDigits)}));
  }
  if (!some) choices.push_back(text_node(""));
  return choice_node(std::move(choices));
}

/// The same for both.
NodePointer fraction_between(std::string_view least, bool above, std::string_view most, bool below,
                             bool some) {
  if (least.empty() && most.empty() && (above || below)) return nothing();
  if (most.empty()) return least.empty() ? fraction_to({}, below, some) : nothing();
  const char low = least.empty() ? '0' : least[0];
  const char high = most[0];
  if (low > high) return nothing();
  const std::string_view later_least = least.empty() ? least : least.substr(1);
  std::vector<NodePointer> choices;
  if (!some && least.empty() && !above) choices.push_back(text_node(""));
  if (low == high) {
    choices.push_back(
        sequence_node({one_digit(low), fraction_between(later_least, above, most.substr(1), below, false)}));
    return choice_node(std::move(choices));
  }
  choices.push_back(sequence_node({one_digit(low), fraction_from(later_least, above)}));
  choices.push_back(sequence_node({one_digit(high), fraction_to(most.substr(1), below, false)}));
  if (low + 1 < high) {
    choices.push_back(sequence_node(
        {digit(static_cast<char>(low + 1), static_cast<char>(high - 1)), digits(0, kMostDigits)}));
  }
  return choice_node(std::move(choices));
}

NodePointer optional_fraction() {
  return repeat_node(sequence_node({text_node("."), digits(1, kMostDigits)}), 0, 1);
}

/// A point and the digits behind it, or nothing where that is within the limits too.
NodePointer with_point(NodePointer fraction, bool optional) {
  NodePointer pointed = sequence_node({text_node("."), std::move(fraction)});
  return optional ? repeat_node(std::move(pointed), 0, 1) : pointed;
}

/// Numbers without a sign from one limit to another, or without end.
NodePointer unsigned_node(const DecimalBound& least, const std::optional<DecimalBound>& most) {
  const bool from_whole = least.fraction.empty() && !least.exclusive;
  std::vector<NodePointer> choices;
  const int64_t end = most ? most->whole - 1 : kLargestInteger;
  if (least.whole + 1 <= end) {
    choices.push_back(sequence_node({natural_node(least.whole + 1, end), optional_fraction()}));
  }
  const NodePointer first = text_node(std::to_string(least.whole));
  if (!most || least.whole < most->whole) {
    choices.push_back(sequence_node(
        {first, from_whole ? optional_fraction()
                           : with_point(fraction_from(least.fraction, least.exclusive), false)}));
  }
  if (most && least.whole < most->whole) {
    const bool whole = !most->fraction.empty() || !most->exclusive;
    choices.push_back(sequence_node({text_node(std::to_string(most->whole)),
                                     with_point(fraction_to(most->fraction, most->exclusive, true), whole)}));
  }
  if (most && least.whole == most->whole) {
    const bool whole = from_whole && (!most->fraction.empty() || !most->exclusive);
    choices.push_back(sequence_node(
        {first,
         with_point(fraction_between(least.fraction, least.exclusive, most->fraction, most->exclusive, true),
                    whole)}));
  }
  return choice_node(std::move(choices));
}

}  // namespace

NodePointer integer_node(int64_t least, int64_t most) {
  std::vector<NodePointer> choices;
  if (most >= 0) choices.push_back(natural_node(std::max<int64_t>(least, 0), most));
  if (least < 0) {
    choices.push_back(sequence_node({text_node("-"), natural_node(std::max<int64_t>(-most, 1), -least)}));
  }
  return choice_node(std::move(choices));
}

NodePointer multiple_node(int64_t divisor) {
  // By remainder: the ways to go on, with at most so many digits more.
  std::vector<NodePointer> after(static_cast<size_t>(divisor), nothing());
  after[0] = text_node("");
  NodePointer unsigned_part;
  for (int32_t left = 1; left <= kMostDigits; ++left) {
    const bool first = left == kMostDigits;
    std::vector<NodePointer> next;
    for (int64_t remainder = 0; remainder < (first ? 1 : divisor); ++remainder) {
      std::vector<NodePointer> choices;
      if (remainder == 0 && !first) choices.push_back(text_node(""));
      for (char c = first ? '1' : '0'; c <= '9'; ++c) {
        const auto reached = static_cast<size_t>((remainder * 10 + (c - '0')) % divisor);
        choices.push_back(sequence_node({one_digit(c), after[reached]}));
      }
      next.push_back(choice_node(std::move(choices)));
    }
    after = std::move(next);
  }
  return choice_node({text_node("0"), sequence_node({repeat_node(text_node("-"), 0, 1), after[0]})});
}

std::optional<DecimalBound> decimal_bound(double value, bool exclusive) {
  const double size = std::fabs(value);
  if (!(size < kBeyondAllDigits)) return std::nullopt;
  std::string exact = fmt::format("{}", size);
  if (const size_t e = exact.find('e'); e != std::string::npos) {
    // Of numbers that are small enough for this, only those below 1 are written with an exponent.
    const int zeros = -std::stoi(exact.substr(e + 1)) - 1;
    if (zeros < 0 || zeros > kMostDigits) return std::nullopt;
    exact.resize(e);
    std::erase(exact, '.');
    exact.insert(0, "0." + std::string(static_cast<size_t>(zeros), '0'));
  }
  const size_t point = exact.find('.');
  DecimalBound bound{.negative = value < 0, .exclusive = exclusive};
  bound.whole = std::stoll(exact.substr(0, point));
  if (point != std::string::npos) bound.fraction = exact.substr(point + 1);
  while (bound.fraction.ends_with('0')) bound.fraction.pop_back();
  if (bound.fraction.size() > static_cast<size_t>(kMostDigits)) return std::nullopt;
  return bound;
}

DecimalBound outermost_bound(bool negative) {
  return {.negative = negative, .whole = kLargestInteger, .fraction = std::string(kMostDigits, '9')};
}

NodePointer number_node(const std::optional<DecimalBound>& least, const std::optional<DecimalBound>& most) {
  const NodePointer minus = text_node("-");
  if (!least && !most) {
    const NodePointer exponent =
        sequence_node({texts_node({"e", "E"}), repeat_node(texts_node({"+", "-"}), 0, 1), digits(1, 2)});
    return sequence_node({repeat_node(minus, 0, 1), natural_node(0, kLargestInteger), optional_fraction(),
                          repeat_node(exponent, 0, 1)});
  }
  std::vector<NodePointer> choices;
  const bool some_positive = !most || !most->negative;
  const bool some_negative = !least || least->negative;
  if (some_positive)
    choices.push_back(unsigned_node(!least || least->negative ? DecimalBound{} : *least, most));
  if (some_negative) {
    // The sizes of negative numbers are above that of the upper limit, or of zero, and below that of the
    // lower.
    DecimalBound from{.exclusive = true};
    if (most && most->negative) from = *most;
    choices.push_back(sequence_node({minus, unsigned_node(from, least)}));
  }
  return choice_node(std::move(choices));
}

}  // namespace verbatim
