#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace verbatim {

/// The `kCount` tokens with the largest scores among those offered, best first, the smaller token first among
/// equals. A place that is still empty has the score minus infinity and loses to nothing but NaN and minus
/// infinity.
template <size_t kCount>
class BestList {
 public:
  struct Entry {
    double score = -std::numeric_limits<double>::infinity();
    int32_t token = -1;
  };

  void offer(double score, int32_t token) {
    if (!(score > last().score || (score == last().score && token < last().token))) return;
    size_t place = kCount - 1;
    for (; place > 0; --place) {
      const Entry& before = entries_[place - 1];
      if (before.score > score || (before.score == score && before.token < token)) break;
      entries_[place] = before;
    }
    entries_[place] = {score, token};
  }

  /// The entry that has to be beaten.
  const Entry& last() const { return entries_[kCount - 1]; }
  const Entry& operator[](size_t place) const { return entries_[place]; }
  /// How many places are taken.
  size_t size() const {
    size_t taken = 0;
    while (taken < kCount && entries_[taken].token >= 0) ++taken;
    return taken;
  }

 private:
  std::array<Entry, kCount> entries_;
};

}  // namespace verbatim
