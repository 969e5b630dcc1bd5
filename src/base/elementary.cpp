#include "base/elementary.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

// Of the C library's functions this file uses only those whose results IEEE 754 defines to the last bit:
// floor, fmod and ldexp are exact (ldexp rounds subnormal results to nearest).

namespace verbatim::elementary {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// ln 2 in two parts, of which the first has 32 bits, so that its product with an exponent is exact.
constexpr double kLn2Upper = 0x1.62e42feep-1;
constexpr double kLn2Lower = 0x1.a39ef35793c76p-33;
constexpr double kInverseLn2 = 0x1.71547652b82fep0;

double nearest_integer(double x) {
  return std::floor(x + 0.5);
}

/// The value of Σ coefficients[i] · x^i.
template <size_t kCount>
double polynomial(const std::array<double, kCount>& coefficients, double x) {
  double value = 0.0;
  for (size_t i = kCount; i-- > 0;) value = value * x + coefficients[i];
  return value;
}

/// The coefficients of a Taylor series: 1 / first!, ± 1 / (first + step)!, 1 / (first + 2 · step)!, ...
template <size_t kCount>
constexpr std::array<double, kCount> inverse_factorials(int first, int step, double sign) {
  std::array<double, kCount> coefficients{};
  double factorial = 1.0;  // exact up to 22!
  int n = 1;
  double signed_one = 1.0;
  for (size_t i = 0; i < kCount; ++i) {
    for (const int last = first + static_cast<int>(i) * step; n <= last; ++n) factorial *= n;
    coefficients[i] = signed_one / factorial;
    signed_one *= sign;
  }
  return coefficients;
}

/// The coefficients of (2 atanh(s) - 2 s) / s in powers of s²: 2/3 s² + 2/5 s⁴ + ...
constexpr std::array<double, 13> kArtanh = [] {
  std::array<double, 13> coefficients{};
  for (size_t i = 1; i < coefficients.size(); ++i) coefficients[i] = 2.0 / static_cast<double>(2 * i + 1);
  return coefficients;
}();

/// A sum of two doubles, of which the second is at most half a unit in the last place of the first: about 106
/// bits.
struct Pair {
  double upper;
  double lower;
};

Pair exact_sum(double a, double b) {  // Knuth
  const double sum = a + b;
  const double part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

Pair exact_product(double a, double b) {     // Dekker
  constexpr double kSplitter = 134217729.0;  // 2^27 + 1
  const auto split = [](double x) {
    const double scaled = x * kSplitter;
    const double upper = scaled - (scaled - x);
    return Pair{upper, x - upper};
  };
  const double product = a * b;
  const Pair x = split(a);
  const Pair y = split(b);
  return {product,
          x.lower * y.lower - (((product - x.upper * y.upper) - x.lower * y.upper) - x.upper * y.lower)};
}

Pair add(Pair a, Pair b) {
  const Pair upper = exact_sum(a.upper, b.upper);
  const Pair lower = exact_sum(a.lower, b.lower);
  const Pair sum = exact_sum(upper.upper, upper.lower + lower.upper);
  return exact_sum(sum.upper, sum.lower + lower.lower);
}

Pair multiply(Pair a, Pair b) {
  const Pair product = exact_product(a.upper, b.upper);
  return exact_sum(product.upper, product.lower + (a.upper * b.lower + a.lower * b.upper));
}

Pair divide(Pair a, double b) {
  const double quotient = a.upper / b;
  const Pair product = exact_product(quotient, b);
  return exact_sum(quotient, (((a.upper - product.upper) - product.lower) + a.lower) / b);
}

/// e^x as power · 2^exponent, for magnitudes of x up to 2^20.
struct ScaledPair {
  Pair power;
  int exponent;
};
ScaledPair exp_pair(Pair x) {
  constexpr Pair kLn2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
  constexpr int kHalvings = 8;
  const double n = nearest_integer(x.upper * kInverseLn2);
  Pair rest = add(x, multiply({-n, 0.0}, kLn2));
  rest = {rest.upper / (1 << kHalvings), rest.lower / (1 << kHalvings)};
  Pair sum = {1.0, 0.0};
  for (int i = 12; i > 0; --i) sum = add({1.0, 0.0}, divide(multiply(sum, rest), i));
  for (int i = 0; i < kHalvings; ++i) sum = multiply(sum, sum);
  return {sum, static_cast<int>(n)};
}

/// The logarithm of a positive, normal number to about 100 bits.
Pair log_pair(double x) {
  // One step of an iteration whose error is the cube of that of log(): y + 2 (x - e^y) / (x + e^y).
  const double y = log(x);
  const auto [power, exponent] = exp_pair({y, 0.0});
  const double scaled = std::ldexp(x, -exponent);
  const Pair difference = add({scaled, 0.0}, {-power.upper, -power.lower});
  return add({y, 0.0}, divide({2.0 * difference.upper, 2.0 * difference.lower}, scaled + power.upper));
}

}  // namespace

double log(double x) {
  constexpr uint64_t kRootOfHalf = 0x3fe6a09e667f3bcd;
  if (!(x > 0.0)) return x == 0.0 ? -kInfinity : kNan;
  if (x == kInfinity) return x;
  int exponent = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1p54;
    exponent = -54;
  }
  // x = (1 + f) · 2^exponent, with 1 + f between the roots of 1/2 and 2.
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const auto power = static_cast<int64_t>(bits - kRootOfHalf) >> 52;
  const double f = std::bit_cast<double>(bits - (static_cast<uint64_t>(power) << 52)) - 1.0;
  exponent += static_cast<int>(power);
  // log(1 + f) = 2 atanh(s) with s = f / (2 + f), which is f - f²/2 + s (f²/2 + 2 atanh(s) / s - 2).
  const double s = f / (2.0 + f);
  const double half_square = 0.5 * f * f;
  const double rest = s * (half_square + polynomial(kArtanh, s * s));
  const double n = exponent;
  if (exponent == 0) return f - (half_square - rest);
  return n * kLn2Upper - ((half_square - (rest + n * kLn2Lower)) - f);
}

double log1p(double x) {
  const double sum = 1.0 + x;
  if (!(sum < kInfinity)) return sum;
  return log(sum) + exact_sum(1.0, x).lower / sum;
}

double exp(double x) {
  constexpr auto kTaylor = inverse_factorials<13>(2, 1, 1.0);  // of (e^r - 1 - r) / r²
  if (!(x < 710.0)) return x + kInfinity;
  if (x < -746.0) return 0.0;
  const double n = nearest_integer(x * kInverseLn2);
  const double upper = x - n * kLn2Upper;
  const double lower = n * kLn2Lower;
  const double r = upper - lower;
  const double error = (upper - r) - lower;
  return std::ldexp(1.0 + (r + (r * r * polynomial(kTaylor, r) + error)), static_cast<int>(n));
}

double pow(double base, double exponent) {
  if (!(base > 0.0 && base < kInfinity)) return kNan;
  const Pair logarithm = log_pair(base);
  const Pair product = multiply(logarithm, {exponent, 0.0});
  if (!(std::abs(product.upper) < 750.0)) return exp(product.upper);
  const auto [power, scale] = exp_pair(product);
  return std::ldexp(power.upper + power.lower, scale);
}

SineCosine sine_cosine(double angle) {
  // π/2 in four parts, of which three have 24 bits, so that their products with `turns` are exact.
  constexpr double kHalfPi[] = {0x1.921fb4p0, 0x1.4442dp-24, 0x1.846988p-48, 0x1.8cc51701b839ap-72};
  constexpr double kInverseHalfPi = 0x1.45f306dc9c883p-1;
  constexpr double kTwoPi = 0x1.921fb54442d18p2;
  constexpr auto kSine = inverse_factorials<9>(3, 2, -1.0);    // of (r - sin r) / r³
  constexpr auto kCosine = inverse_factorials<9>(4, 2, -1.0);  // of (cos r - 1 + r²/2) / r⁴
  if (!(std::abs(angle) < kInfinity)) return {kNan, kNan};
  if (std::abs(angle) > 0x1p28) angle = std::fmod(angle, kTwoPi);
  const double turns = nearest_integer(angle * kInverseHalfPi);
  const double coarse = (angle - turns * kHalfPi[0]) - turns * kHalfPi[1];
  const double third = turns * kHalfPi[2];
  const double fine = coarse - third;
  const double fourth = ((coarse - fine) - third) - turns * kHalfPi[3];
  const double r = fine + fourth;
  const double tail = (fine - r) + fourth;  // the angle is r + tail
  const double square = r * r;
  // sin(r + tail) ≈ sin r + tail cos r, cos(r + tail) ≈ cos r - tail sin r.
  const double sine = r - (r * square * polynomial(kSine, square) - tail * (1.0 - 0.5 * square));
  const double half_square = 0.5 * square;
  const double one_less = 1.0 - half_square;
  const double cosine = one_less + (((1.0 - one_less) - half_square) +
                                    (square * square * polynomial(kCosine, square) - r * tail));
  switch (static_cast<int64_t>(turns) & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

}  // namespace verbatim::elementary
