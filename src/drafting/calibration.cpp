#include "drafting/calibration.h"

#include <algorithm>
#include <cmath>

namespace verbatim {

namespace {

/// The weight of one observation in the running mean.
constexpr float kRate = 1.0f / 64;
/// The factor by which older observations fade with each new one: a bucket remembers about a hundred.
constexpr float kFade = 0.99f;
/// The number of observations that the expectation of a bucket counts as.
constexpr float kPrior = 4.0f;

}  // namespace

int Calibration::bucket_of(float confidence) {
  // Buckets halve 1 - confidence from one to the next: most confidences lie between 0.9 and 1, where such
  // differences matter.
  const float doubt = std::clamp(1.0f - confidence, 0.0f, 1.0f);
  if (doubt < 1.0f / 128) return kBuckets - 1;
  return std::clamp(static_cast<int>(-std::log2(doubt)), 0, kBuckets - 2);
}

float Calibration::kept(int32_t rank, float confidence) const {
  const Bucket& bucket = buckets_[rank > 0 ? 1 : 0][static_cast<size_t>(bucket_of(confidence))];
  // With a factor below 1 the first child is expected to be kept more often than its confidence says, and the
  // siblings as much more rarely, so that the probabilities of all still add up to 1 at most. A factor above
  // 1 takes away half of a confidence at most.
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
