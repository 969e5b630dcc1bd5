#pragma once

#include <array>
#include <cstdint>

namespace verbatim {

/// What a drafter's confidence is worth: how often verification kept tokens of about that confidence whose
/// parent it kept, lately. First children and their siblings count apart.
class Calibration {
 public:
  /// Until something is known, so many times a confidence's doubt (one less the confidence) is believed: less
  /// than 1 for drafters that know better than they think, more for those that think they know.
  explicit Calibration(float doubt = 1.0f) : doubt_(doubt), mean_(1.0f - doubt * kUsualDoubt) {}

  /// The probability that a child of this rank and confidence is kept.
  float kept(int32_t rank, float confidence) const;
  /// Takes in what became of one whose parent was kept.
  void observe(int32_t rank, float confidence, bool was_kept);

  /// The fraction of first children that was kept, lately.
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
