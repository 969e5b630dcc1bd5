#include "speculation/calibration.h"

#include <algorithm>
#include <cmath>

namespace verbatim {

namespace {

/// How much one observation changes the running mean.
constexpr float kRate = 1.0f / 64;
/// Observations fade with this factor, so that a bucket remembers about a hundred of them.
constexpr float kFade = 0.99f;
/// What is expected counts as so many observations.
constexpr float kPrior = 4.0f;

}  // namespace

int Calibration::bucket_of(float confidence) {
  // By how unlikely the token is not to be kept: drafts live between 0.9 and 1, where halves matter.
  const float doubt = std::clamp(1.0f - confidence, 0.0f, 1.0f);
  if (doubt < 1.0f / 128) return kBuckets - 1;
  return std::clamp(static_cast<int>(-std::log2(doubt)), 0, kBuckets - 2);
}

float Calibration::kept(int32_t rank, float confidence) const {
  const Bucket& bucket = buckets_[rank > 0 ? 1 : 0][static_cast<size_t>(bucket_of(confidence))];
  // What is not doubted of the first choice is missing from the others, so that together they stay below one.
  // More doubt than a confidence has room for still leaves half of it.
  const float first = 1.0f - doubt_ * (1.0f - confidence);
  const float expected =
      rank == 0 || doubt_ > 1.0f ? std::max(first, 0.5f * confidence) : doubt_ * confidence;
  return (bucket.kept + kPrior * expected) / (bucket.seen + kPrior);
}

void Calibration::observe(int32_t rank, float confidence, bool was_kept) {
  Bucket& bucket = buckets_[rank > 0 ? 1 : 0][static_cast<size_t>(bucket_of(confidence))];
  const float value = was_kept ? 1.0f : 0.0f;
  bucket.kept = bucket.kept * kFade + value;
  bucket.seen = bucket.seen * kFade + 1.0f;
  if (rank == 0) mean_ += (value - mean_) * kRate;
}

}  // namespace verbatim
