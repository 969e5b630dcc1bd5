#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "verbatim/generate.h"

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
class Registry;
}  // namespace prometheus

namespace verbatim::serve {

/// What a model has done since the server began, over all the times that it was loaded. All members may be
/// called from several threads.
class ModelCounts {
 public:
  /// The numbers become metrics of `registry`, which must outlive this object, with the label `model`.
  ModelCounts(prometheus::Registry& registry, const std::string& model);

  /// Tokens of one choice came: `first` says that they are its first ones, `seconds` after it was asked for,
  /// or after the ones before.
  void took_tokens(int64_t count, bool first, double seconds);
  /// A choice has ended that had a prompt of this length. `plain` says that nothing drafted.
  void ended(const GenerateResult& result, int64_t prompt_tokens, bool plain);
  /// The requests that wait and those that run, now.
  void set_queue(int64_t waiting, int64_t running);

  struct Totals {
    double tokens_per_second = 0;                   ///< over the last seconds, all choices together
    std::optional<double> plain_tokens_per_second;  ///< of a choice that was decoded plainly, lately
    int64_t generated = 0;
    int64_t prompt = 0;
    int64_t cached = 0;
    int64_t drafted = 0;
    int64_t accepted = 0;
    std::vector<int64_t> lengths;  ///< steps by how many drafts they kept
  };
  Totals totals() const;

  /// Choices that are not ended.
  std::atomic<int64_t> choices{0};

 private:
  static constexpr int64_t kSeconds = 8;

  mutable std::mutex mutex_;
  Totals totals_;
  std::array<int64_t, kSeconds> tokens_of_second_{};
  std::array<int64_t, kSeconds> second_of_{};
  prometheus::Counter* generated_;
  prometheus::Counter* prompt_;
  prometheus::Counter* cached_;
  prometheus::Counter* drafted_;
  prometheus::Counter* accepted_;
  prometheus::Gauge* waiting_;
  prometheus::Gauge* running_;
  prometheus::Histogram* first_token_;
  prometheus::Histogram* between_tokens_;
};

}  // namespace verbatim::serve
