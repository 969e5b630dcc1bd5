#include "engine/batch_pace.h"

#include <algorithm>

#include "engine/worthwhile_rows.h"

namespace verbatim {

namespace {

/// The weight of one pass in the averages.
constexpr double kRate = 0.05;

/// The number of passes over the whole model without a drafting pass after which one is tried.
constexpr int64_t kTrialAfter = 32;

/// Until passes with different rows were seen, a row is taken to add this share of what a pass over few
/// takes: about what it does where tile units multiply.
constexpr double kRowShare = 1.0 / 64;
/// That counts as much as observations whose rows differ from their average by so much, squared and added up.
constexpr double kRowShareWeight = 50.0;

/// The limits of keep thresholds: a row is never taken to cost nothing, nor so much that only certain tokens
/// pay.
constexpr double kLeastPath = 0.02;
constexpr double kMostPath = 0.9;

}  // namespace

void FadingPassCost::fade() {
  for (double* const sum : {&weight_, &rows_rows_, &rows_seconds_}) *sum *= 1.0 - kRate;
}

void FadingPassCost::observe(int64_t rows, double seconds) {
  fade();
  weight_ += 1.0;
  const double rows_off = static_cast<double>(rows) - rows_;
  const double seconds_off = seconds - seconds_;
  rows_ += rows_off / weight_;
  seconds_ += seconds_off / weight_;
  const double share = 1.0 - 1.0 / weight_;
  rows_rows_ += rows_off * rows_off * share;
  rows_seconds_ += rows_off * seconds_off * share;
}

double FadingPassCost::row() const {
  const double expected = seconds_ * kRowShare / (1.0 + rows_ * kRowShare);
  return std::max(0.0, (rows_seconds_ + kRowShareWeight * expected) / (rows_rows_ + kRowShareWeight));
}

double FadingPassCost::of(double rows) const {
  return std::max(0.5 * seconds_, seconds_ + row() * (rows - rows_));
}

void BatchPace::whole_pass(int64_t rows, double seconds) {
  whole_.observe(rows, seconds);
  drafts_.fade();
  ++undrafted_;
}

void BatchPace::draft_pass(int64_t rows, double seconds) {
  drafts_.observe(rows, seconds);
  undrafted_ = 0;
}

void BatchPace::step(int64_t kept, bool cut) {
  const double fade = 1.0 - kRate / 4;
  kept_ = kept_ * fade + static_cast<double>(kept);
  cut_ = cut_ * fade + (cut ? 1.0 : 0.0);
}

/// Tokens per second with drafts of the best common length, or without drafts.
double BatchPace::best_rate(int64_t sequences) const {
  const auto by = [](const FadingPassCost& cost) -> SecondsOfRows {
    return [&cost](int64_t rows) { return cost.of(static_cast<double>(rows)); };
  };
  return usual_rate(sequences, kept(), by(whole_), drafts_.known() ? by(drafts_) : nullptr);
}

bool BatchPace::trial_due() const {
  return undrafted_ >= kTrialAfter;
}

bool BatchPace::pays(double tokens, int64_t rows, int64_t verified, int64_t sequences) const {
  if (!whole_.known() || !drafts_.known() || trial_due()) return true;
  const double seconds = drafts_.of(static_cast<double>(rows)) + static_cast<double>(verified) * whole_.row();
  return tokens >= best_rate(sequences) * seconds;
}

PassRunner::KeepThresholds BatchPace::keep_thresholds(int64_t sequences) const {
  if (!whole_.known()) return {};
  const double rate = best_rate(sequences);
  return {std::clamp(rate * (drafts_.row() + whole_.row()) / kept(), kLeastPath, kMostPath),
          std::clamp(rate * whole_.row(), kLeastPath, kMostPath)};
}

}  // namespace verbatim
