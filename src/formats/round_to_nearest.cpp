#include "formats/round_to_nearest.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "base/error.h"
#include "formats/importance.h"

namespace verbatim {

namespace {

constexpr double kLargest = std::numeric_limits<float>::max();

}  // namespace

void round_to_nearest(std::span<const float> weights, int bits, std::span<float> out) {
  if (bits < 1 || bits > 16)
    fail(ErrorKind::kUsage, "rounding to {} bits was asked for; 1 to 16 exist", bits);
  if (out.size() != weights.size())
    fail(ErrorKind::kUsage, "{} weights do not fit into {} places", weights.size(), out.size());
  double smallest = 0.0;
  double largest = 0.0;
  for (const float w : weights) {
    smallest = std::min<double>(smallest, finite_or_zero(w));
    largest = std::max<double>(largest, finite_or_zero(w));
  }
  const double top = (1 << bits) - 1;
  const double step = (largest - smallest) / top;
  if (step == 0.0) {
    std::fill(out.begin(), out.end(), 0.0f);
    return;
  }
  const double zero = std::nearbyint(-smallest / step);
  for (size_t i = 0; i < weights.size(); ++i) {
    const double level = std::clamp(std::nearbyint(finite_or_zero(weights[i]) / step) + zero, 0.0, top);
    // The shift to a whole zero may carry the ends beyond the largest float.
    out[i] = static_cast<float>(std::clamp((level - zero) * step, -kLargest, kLargest));
  }
}

}  // namespace verbatim
