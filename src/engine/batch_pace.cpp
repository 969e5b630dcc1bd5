#include "engine/batch_pace.h"

#include <algorithm>

namespace verbatim {

namespace {

/// How much a pass or a step changes averages.
constexpr double kRate = 0.1;

/// Until passes with different rows were seen, a row is taken to add this share of what a pass over few
/// takes: about what it does where tile units multiply.
constexpr double kRowShare = 1.0 / 64;
/// That counts as much as observations whose rows differ from their average by so much, squared and added up.
constexpr double kRowShareWeight = 50.0;

/// A row is never believed to cost nothing, nor to be so dear that only certain tokens are worth one.
constexpr double kLeastPath = 0.02;
constexpr double kMostPath = 0.9;

}  // namespace

void FadingPassCost::observe(int64_t rows, double seconds) {
  const double fade = 1.0 - kRate;
  weight_ = weight_ * fade + 1.0;
  const double rows_off = static_cast<double>(rows) - rows_;
  const double seconds_off = seconds - seconds_;
  rows_ += rows_off / weight_;
  seconds_ += seconds_off / weight_;
  const double share = 1.0 - 1.0 / weight_;
  rows_rows_ = rows_rows_ * fade + rows_off * rows_off * share;
  rows_seconds_ = rows_seconds_ * fade + rows_off * seconds_off * share;
}

double FadingPassCost::row() const {
  const double expected = seconds_ * kRowShare / (1.0 + rows_ * kRowShare);
  return std::max(0.0, (rows_seconds_ + kRowShareWeight * expected) / (rows_rows_ + kRowShareWeight));
}

double FadingPassCost::of(double rows) const {
  return std::max(0.5 * seconds_, seconds_ + row() * (rows - rows_));
}

void BatchPace::whole_pass(int64_t rows, double seconds, double now) {
  whole_.observe(rows, seconds);
  if (last_whole_ > 0.0) {
    const double rate = seconds_ == 0.0 ? 1.0 : kRate;
    seconds_ += rate * (now - last_whole_ - seconds_);
    tokens_ += rate * (gained_ - tokens_);
  }
  gained_ = 0.0;
  last_whole_ = now;
}

void BatchPace::draft_pass(int64_t rows, double seconds) {
  drafts_.observe(rows, seconds);
}

bool BatchPace::pays(double tokens, int64_t rows) const {
  if (!known() || !drafts_.known()) return true;
  const auto count = static_cast<double>(rows);
  return tokens >= rate() * (drafts_.of(count) + count * whole_.row());
}

double BatchPace::least_path() const {
  if (!known()) return 0.0;
  return std::clamp(rate() * (drafts_.row() + whole_.row()), kLeastPath, kMostPath);
}

}  // namespace verbatim
