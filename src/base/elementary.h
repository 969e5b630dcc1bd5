#pragma once

namespace verbatim::elementary {

// Elementary functions in additions, multiplications and divisions of doubles, in one fixed order. The C
// library's differ in their last bits from version to version, and within one from processor to processor.
// Whatever a token depends on is computed with these, so that every machine finds the same bits.

/// Computes the natural logarithm, within one unit in the last place. It is minus infinity at 0, infinity at
/// infinity, and NaN for NaN and below 0.
double log(double x);
/// Computes log(1 + x) for x >= 0, within two units in the last place.
double log1p(double x);
/// Computes e^x, within one unit in the last place for results of normal size. Results too large are
/// infinity.
double exp(double x);
/// Computes base^exponent for a positive, finite base; it is NaN for any other. The error is below 0.501
/// units in the last place for results of normal size. It takes microseconds.
double pow(double base, double exponent);

/// The sine and the cosine of an angle.
struct SineCosine {
  double sine;
  double cosine;
};
/// Computes sine and cosine of an angle in radians within one unit in the last place, for magnitudes up to
/// 2^28. Beyond that an angle is first taken modulo the double nearest to 2π, so that errors grow with it.
/// Both are NaN unless the angle is finite.
SineCosine sine_cosine(double angle);

}  // namespace verbatim::elementary
