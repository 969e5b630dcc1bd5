#pragma once

#include <optional>
#include <string>

#include "structure/node.h"

namespace verbatim {

/// The most digits of an integer and of either part of a number, so that a reply cannot go on with digits
/// for ever. Integers of so many digits are exact as doubles.
inline constexpr int32_t kMostDigits = 15;
/// The largest integer of so many digits.
inline constexpr int64_t kLargestInteger = 999'999'999'999'999;
/// The least number that is larger than all of so many digits.
inline constexpr double kBeyondAllDigits = 1e15;

/// Integers from `least` to `most`, both at most kLargestInteger in size.
NodePointer integer_node(int64_t least, int64_t most);

/// The integers of at most kMostDigits digits that `divisor`, from 1 to 100, divides.
NodePointer multiple_node(int64_t divisor);

/// A limit of a number, in decimal digits: 12.5 has whole 12 and fraction "5".
struct DecimalBound {
  bool negative = false;
  int64_t whole = 0;
  std::string fraction = {};  ///< digits without zeros at the end
  bool exclusive = false;

  bool operator==(const DecimalBound&) const = default;
};

/// The decimal of a number; nothing if it has more than kMostDigits digits before or behind the point.
std::optional<DecimalBound> decimal_bound(double value, bool exclusive);

/// The limit that rules out no number that can be written with kMostDigits digits before and behind the
/// point.
DecimalBound outermost_bound(bool negative);

/// Numbers within limits, written without an exponent; without limits, with or without one.
NodePointer number_node(const std::optional<DecimalBound>& least, const std::optional<DecimalBound>& most);

}  // namespace verbatim
