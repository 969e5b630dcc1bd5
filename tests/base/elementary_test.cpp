#include "base/elementary.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace verbatim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The distance of `value` from the exact result, in units in the last place of a double of that size.
double error_of(double value, long double exact) {
  const double nearest = static_cast<double>(exact);
  const double magnitude = std::abs(nearest);
  const double unit = std::nextafter(magnitude, kInfinity) - magnitude;
  return static_cast<double>(std::abs(static_cast<long double>(value) - exact) / unit);
}

/// Numbers of every size between two powers of two, either sign or positive alone.
class Numbers {
 public:
  Numbers(double lowest_power, double highest_power) : power_(lowest_power, highest_power) {}
  double next() { return std::exp2(power_(generator_)); }

 private:
  std::mt19937_64 generator_{7};
  std::uniform_real_distribution<double> power_;
};

constexpr int kTries = 200000;

TEST(Elementary, LogarithmIsRightToAUnit) {
  Numbers any(-1074, 1023);
  Numbers near_one(-1, 1);
  double worst = 0.0;
  for (int i = 0; i < kTries; ++i) {
    for (const double x : {any.next(), near_one.next(), 1.0 + (near_one.next() - 1.0) * 1e-6}) {
      worst = std::max(worst, error_of(elementary::log(x), std::log(static_cast<long double>(x))));
    }
  }
  EXPECT_LT(worst, 1.0);
  EXPECT_GT(worst, 0.25) << "the error cannot be measured";
}

TEST(Elementary, LogarithmOfOnePlusSomethingIsRightToTwoUnits) {
  Numbers any(-80, 200);
  double worst = 0.0;
  for (int i = 0; i < kTries; ++i) {
    const double x = any.next();
    worst = std::max(worst, error_of(elementary::log1p(x), std::log1p(static_cast<long double>(x))));
  }
  EXPECT_LT(worst, 2.0);
}

TEST(Elementary, ExponentialIsRightToAUnit) {
  Numbers any(-60, 9);
  double worst = 0.0;
  for (int i = 0; i < kTries; ++i) {
    const double magnitude = any.next();
    for (const double x : {magnitude, -magnitude}) {
      worst = std::max(worst, error_of(elementary::exp(x), std::exp(static_cast<long double>(x))));
    }
  }
  EXPECT_LT(worst, 1.0);
}

TEST(Elementary, PowerIsRoundedToTheNearestDouble) {
  // What this is for: the frequencies of rotated pairs. A long double has eleven bits more, or sixty.
  double worst = 0.0;
  for (const double base : {10000.0, 500000.0, 1e6, 8e6, 1e7, 3.0, 0.1}) {
    for (const int size : {16, 64, 80, 96, 128, 256}) {
      for (int i = 0; i < size / 2; ++i) {
        const double exponent = -2.0 * i / size;
        const long double exact =
            std::pow(static_cast<long double>(base), static_cast<long double>(exponent));
        worst = std::max(worst, error_of(elementary::pow(base, exponent), exact));
      }
    }
  }
  EXPECT_LT(worst, 0.501);
}

TEST(Elementary, SineAndCosineAreRightToAUnit) {
  Numbers any(-40, 28);
  double worst = 0.0;
  for (int i = 0; i < kTries; ++i) {
    const double magnitude = any.next();
    for (const double angle : {magnitude, -magnitude, std::floor(magnitude)}) {
      const auto [sine, cosine] = elementary::sine_cosine(angle);
      worst = std::max(worst, error_of(sine, std::sin(static_cast<long double>(angle))));
      worst = std::max(worst, error_of(cosine, std::cos(static_cast<long double>(angle))));
    }
  }
  EXPECT_LT(worst, 1.0);
}

TEST(Elementary, SineAndCosineAreRightNextToTheirZeros) {
  for (int turns = 1; turns < 100000; ++turns) {
    const double angle = turns * 1.57079632679489661923;
    const auto [sine, cosine] = elementary::sine_cosine(angle);
    // Half the distance from an angle to the next is more than the library's own error.
    EXPECT_NEAR(sine, static_cast<double>(std::sin(static_cast<long double>(angle))),
                1e-19 + std::abs(sine) * 1e-15);
    EXPECT_NEAR(cosine, static_cast<double>(std::cos(static_cast<long double>(angle))),
                1e-19 + std::abs(cosine) * 1e-15);
  }
}

TEST(Elementary, ExtremeArgumentsHaveTheirLimits) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(elementary::log(0.0), -kInfinity);
  EXPECT_EQ(elementary::log(1.0), 0.0);
  EXPECT_EQ(elementary::log(kInfinity), kInfinity);
  EXPECT_EQ(elementary::log1p(0.0), 0.0);
  EXPECT_EQ(elementary::log1p(kInfinity), kInfinity);
  EXPECT_EQ(elementary::exp(0.0), 1.0);
  EXPECT_EQ(elementary::exp(-kInfinity), 0.0);
  EXPECT_EQ(elementary::exp(kInfinity), kInfinity);
  EXPECT_EQ(elementary::exp(710.0), kInfinity);
  EXPECT_EQ(elementary::pow(10000.0, 0.0), 1.0);
  EXPECT_EQ(elementary::pow(2.0, 4000.0), kInfinity);
  EXPECT_EQ(elementary::pow(2.0, -4000.0), 0.0);
  EXPECT_EQ(elementary::sine_cosine(0.0).cosine, 1.0);
  for (const double value : {elementary::log(-1.0), elementary::log(nan), elementary::exp(nan),
                             elementary::pow(0.0, 1.0), elementary::pow(-1.0, 2.0), elementary::pow(2.0, nan),
                             elementary::sine_cosine(kInfinity).sine, elementary::sine_cosine(nan).cosine}) {
    EXPECT_TRUE(std::isnan(value));
  }
  // Large angles have a sine at least.
  for (const double angle : {0x1p40, -0x1p900, 1e308}) {
    const auto [sine, cosine] = elementary::sine_cosine(angle);
    EXPECT_NEAR(sine * sine + cosine * cosine, 1.0, 1e-15);
  }
}

// The very bits, which no machine may change.
TEST(Elementary, EveryMachineFindsTheseBits) {
  uint64_t sum = 14695981039346656037u;
  const auto take = [&](double value) { sum = (sum ^ std::bit_cast<uint64_t>(value)) * 1099511628211u; };
  for (int i = 1; i <= 20000; ++i) {
    const double x = i * 0x1.3p-9;
    take(elementary::log(x));
    take(elementary::log1p(x));
    take(elementary::exp(x));
    take(elementary::exp(-x));
    take(elementary::sine_cosine(x * 1000).sine);
    take(elementary::sine_cosine(x * 1000).cosine);
    if (i % 100 == 0) take(elementary::pow(x, -0.3));
  }
  EXPECT_EQ(sum, 502650906654897865u);
}

}  // namespace
}  // namespace verbatim
