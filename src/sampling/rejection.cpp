#include "sampling/rejection.h"

#include <algorithm>

#include "base/error.h"
#include "sampling/noise.h"

namespace verbatim {

namespace {

/// Above 0 and below 1.
double uniform(NoiseDomain domain, uint64_t seed, int64_t position) {
  const auto words = noise_words(domain, {seed, position}, 0);
  const uint64_t bits = uint64_t{words[0]} << 20 | words[1] >> 12;
  return (static_cast<double>(bits) + 0.5) * 0x1p-52;
}

/// The token at which the running sum of weight(token) exceeds `target`, or -1 when no weight is positive.
template <typename Weight>
int32_t token_at(size_t count, double target, Weight weight) {
  double sum = 0.0;
  int32_t last = -1;
  for (size_t i = 0; i < count; ++i) {
    const double each = weight(i);
    if (!(each > 0.0)) continue;
    sum += each;
    last = static_cast<int32_t>(i);
    if (sum > target) break;
  }
  return last;
}

template <typename Weight>
int32_t draw(size_t count, double u, Weight weight) {
  double total = 0.0;
  for (size_t i = 0; i < count; ++i) total += weight(i);
  return token_at(count, u * total, weight);
}

}  // namespace

bool keep_draft(float p, float q, uint64_t seed, int64_t position) {
  return uniform(NoiseDomain::kKeep, seed, position) * static_cast<double>(q) < static_cast<double>(p);
}

int32_t sample_residual(std::span<const float> p, std::span<const float> q, uint64_t seed, int64_t position) {
  const double u = uniform(NoiseDomain::kResidual, seed, position);
  const auto difference = [&](size_t i) {
    return static_cast<double>(std::max(0.0f, i < q.size() ? p[i] - q[i] : p[i]));
  };
  int32_t token = draw(p.size(), u, difference);
  if (token < 0) token = draw(p.size(), u, [&](size_t i) { return static_cast<double>(p[i]); });
  if (token < 0) fail(ErrorKind::kUsage, "no token has a probability to draw it with");
  return token;
}

}  // namespace verbatim
