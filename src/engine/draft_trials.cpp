#include "engine/draft_trials.h"

#include <algorithm>
#include <bit>

#include "base/median.h"

namespace verbatim {

namespace {

/// The number of comparisons before which nothing is decided, unless they are clear: one clear comparison
/// confirms a preference, and two that agree change it.
constexpr int64_t kLeast = 3;
/// The factor by which one kind of passes is faster than the other in a clear comparison.
constexpr double kClear = 1.1;
/// The gain from which a batch drafts: of nothing to gain, plain passes are the surer half.
constexpr double kWorthwhile = 1.02;

}  // namespace

/// The place of batches of so many sequences: 2, 3 and 4, 5 to 8, and so on.
size_t DraftTrials::size_of(int64_t sequences) {
  const auto width = std::bit_width(static_cast<uint64_t>(std::max<int64_t>(sequences, 2) - 1));
  return std::min<size_t>(static_cast<size_t>(width) - 1, kSizes - 1);
}

bool DraftTrials::drafts(int64_t sequences) const {
  return sizes_[size_of(sequences)].drafting;
}

void DraftTrials::interrupted() {
  last_.timed = false;
  running_ = false;
}

/// Counts the last pass, now that all of its kept tokens are known.
void DraftTrials::settle() {
  if (!last_.timed) return;
  Size& size = sizes_[last_.size];
  if (size.drafting != last_.drafting) return;
  size.tokens += static_cast<double>(last_.members + kept_);
  size.seconds += last_.seconds;
  if (--size.left <= 0) begin_spell(size);
}

/// Takes in the last trial beside the spells before and after it, and prefers the kind that gains.
void DraftTrials::compare(Size& size, double after) {
  const double ratio = 2 * size.trial / (size.before + after);
  const double gain = size.preferred ? 1 / ratio : ratio;
  size.gains[static_cast<size_t>(size.compared % kComparisons)] = gain;
  ++size.compared;
  const bool confirmed = (gain > kWorthwhile) == size.preferred;
  const auto known = static_cast<std::ptrdiff_t>(std::min(size.compared, kComparisons));
  const bool clear = std::all_of(size.gains.begin(), size.gains.begin() + known,
                                 [&](double one) { return gain > 1 ? one > kClear : one < 1 / kClear; });
  if (size.compared < (!clear ? kLeast : confirmed ? 1 : 2)) return;
  // A trial that speaks against the preference is soon repeated.
  size.interval = confirmed ? std::clamp(2 * size.interval, kOftenest, kRarest) : kOftenest;
  const double middle = median({size.gains.begin(), size.gains.begin() + known});
  size.preferred = middle > kWorthwhile;
}

/// Ends a spell and chooses the kind of the next one.
void DraftTrials::begin_spell(Size& size) {
  const double rate = size.seconds > 0 ? size.tokens / size.seconds : 0;
  size.tokens = 0;
  size.seconds = 0;
  const int64_t passes = spell(size.drafting);
  if (size.drafting != size.preferred) {
    size.trial = rate;
    size.since_trial = 0;
    size.drafting = size.preferred;
  } else {
    if (size.trial > 0 && size.before > 0 && rate > 0) compare(size, rate);
    size.trial = 0;
    size.since_trial += passes;
    const bool changed = size.drafting != size.preferred;
    size.before = changed ? 0 : rate;
    size.drafting = changed || size.since_trial <= size.interval ? size.preferred : !size.preferred;
  }
  size.left = spell(size.drafting);
}

void DraftTrials::pass(int64_t sequences, int64_t members, bool prompts, double now) {
  const bool drafting = drafts(sequences);  // settle() may change it for the next pass
  settle();
  kept_ = 0;
  last_ = {.timed = running_ && !prompts,
           .size = size_of(sequences),
           .drafting = drafting,
           .members = members,
           .seconds = now - end_};
  running_ = true;
  end_ = now;
}

}  // namespace verbatim
