#pragma once

#include <array>
#include <cstdint>

namespace verbatim {

/// Turns a drafter's confidences into probabilities: it measures how often verification lately kept tokens of
/// about a given confidence, counting only tokens whose parent was kept. First children and later siblings
/// are counted apart.
class Calibration {
 public:
  /// `doubt` is the factor on 1 - confidence that gives the expected probability of rejection until there are
  /// observations: below 1 for drafters that are surer than their confidence says, above 1 for overconfident
  /// ones.
  explicit Calibration(float doubt = 1.0f) : doubt_(doubt), mean_(1.0f - doubt * kUsualDoubt) {}

  /// The probability that a child of this rank and confidence is kept.
  float kept(int32_t rank, float confidence) const;
  /// Takes in one drafted token whose parent was kept: its rank, its confidence and whether it was kept.
  void observe(int32_t rank, float confidence, bool was_kept);

  /// The fraction of first children that was kept lately.
  float mean() const { return mean_; }

 private:
  static constexpr int kBuckets = 8;
  static constexpr float kUsualDoubt = 0.3f;
  struct Bucket {
    float kept = 0.0f;
    float seen = 0.0f;
  };
  static int bucket_of(float confidence);

  float doubt_;
  std::array<std::array<Bucket, kBuckets>, 2> buckets_{};
  float mean_;
};

}  // namespace verbatim
