#include "formats/integer_grid.h"

#include <algorithm>
#include <cmath>

namespace verbatim {

namespace {

constexpr float kLargestF16 = 65504.0f;
/// The fractions of a group's full range for which a scale is tried.
constexpr float kRanges[] = {1.0f, 0.95f, 0.9f, 0.85f, 0.8f};

IntegerGrid make_grid(float scale, int bits) {
  const Float16 rounded = to_float16(std::clamp(scale, -kLargestF16, kLargestF16));
  // Of a group of zeros the scale may be -0.
  return symmetric_grid(to_float(rounded) == 0.0f ? Float16{0} : rounded, bits);
}

IntegerGrid make_asymmetric_grid(float scale, float lowest, int bits) {
  IntegerGrid grid = make_grid(scale, bits);
  if (grid.scale.bits != 0) {
    const float zero = std::nearbyint(-lowest / to_float(grid.scale));
    grid.zero = static_cast<uint8_t>(std::clamp(zero, 0.0f, static_cast<float>(grid.last)));
  }
  return grid;
}

double squared_error(const IntegerGrid& grid, std::span<const float> weights) {
  double error = 0.0;
  for (const float w : weights) {
    if (!std::isfinite(w)) continue;
    const double difference = w - grid.value(grid.code(w));
    error += difference * difference;
  }
  return error;
}

}  // namespace

IntegerGrid symmetric_grid(Float16 scale, int bits) {
  const int half = 1 << (bits - 1);
  return {.scale = scale, .zero = static_cast<uint8_t>(half), .last = static_cast<uint8_t>(2 * half - 1)};
}

IntegerGrid best_grid(std::span<const float> weights, int bits, bool asymmetric) {
  float lowest = 0.0f;  // zero must be a level, as activations are often zero on average
  float highest = 0.0f;
  for (const float w : weights) {
    if (!std::isfinite(w)) continue;
    lowest = std::min(lowest, w);
    highest = std::max(highest, w);
  }
  IntegerGrid best = symmetric_grid({0}, bits);
  const float half = best.zero;
  const float last = best.last;
  double least = INFINITY;
  const auto consider = [&](const IntegerGrid& grid) {
    const double error = squared_error(grid, weights);
    if (error < least) {
      least = error;
      best = grid;
    }
  };
  const float extreme = -lowest > highest ? lowest : highest;
  for (const float range : kRanges) {
    if (asymmetric) {
      consider(make_asymmetric_grid((highest - lowest) * range / last, lowest * range, bits));
    } else {
      // The code 0 stands for the most negative level, which has no positive counterpart: a negative scale
      // gives that side to the larger extreme.
      consider(make_grid(-extreme * range / half, bits));
      consider(make_grid(std::fabs(extreme) * range / (half - 1.0f), bits));
    }
  }
  return best;
}

}  // namespace verbatim
