#pragma once

#include <algorithm>

namespace verbatim {

/// A line y = begin + slope · x, begin and slope not negative, fitted by least squares to observations, of
/// which older ones count less and less. It learns the time of work that consists of a fixed part and of a
/// varying number of equal parts.
class FadingLine {
 public:
  /// Until something is observed, y = slope · x.
  explicit FadingLine(double slope) { add(1.0, slope); }

  void observe(double x, double y) {
    for (double* const sum : {&weight_, &x_, &xx_, &y_, &xy_}) *sum *= 1.0 - kRate;
    add(x, y);
  }

  double of(double x) const {
    // The beginning is held near zero as long as the observations do not say much else: they may all have the
    // same x.
    const double weight = weight_ + kNearZero;
    const double determinant = weight * xx_ - x_ * x_;
    const double begin = std::clamp((xx_ * y_ - x_ * xy_) / determinant, 0.0, xy_ / x_);
    return begin + (xy_ - x_ * begin) / xx_ * x;
  }

 private:
  static constexpr double kRate = 0.1;
  static constexpr double kNearZero = 0.02;

  void add(double x, double y) {
    weight_ += 1.0;
    x_ += x;
    xx_ += x * x;
    y_ += y;
    xy_ += x * y;
  }

  double weight_ = 0.0;  // the sum of the weights of all observations
  double x_ = 0.0;       // the weighted sum of x
  double xx_ = 0.0;      // the weighted sum of x²
  double y_ = 0.0;       // the weighted sum of y
  double xy_ = 0.0;      // the weighted sum of x · y
};

}  // namespace verbatim
