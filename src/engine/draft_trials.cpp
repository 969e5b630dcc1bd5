#include "engine/draft_trials.h"

#include <algorithm>
#include <bit>

namespace verbatim {

namespace {

/// The smallest and the largest number of passes between two trials of the kind of spell that loses.
constexpr int64_t kOftenest = 96;
constexpr int64_t kRarest = 1536;
/// What older spells count for when a new one comes.
constexpr double kFade = 0.6;

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
  size.tokens += static_cast<double>(last_.sequences + kept_);
  size.seconds += last_.seconds;
  if (--size.left <= 0) begin_spell(size);
}

/// Ends a spell and chooses the kind of the next one.
void DraftTrials::begin_spell(Size& size) {
  if (size.seconds > 0) {
    Rate& rate = size.rates[size.drafting ? 1 : 0];
    rate.tokens = rate.tokens * kFade + size.tokens;
    rate.seconds = rate.seconds * kFade + size.seconds;
  }
  size.tokens = 0;
  size.seconds = 0;
  size.left = kSpell;
  const auto& [without, with] = size.rates;
  if (!without.known() || !with.known()) {
    size.drafting = !with.known();
    size.interval = kOftenest;
    return;
  }
  const bool better = with.value() > without.value();
  if (better != size.preferred) {
    size.preferred = better;
    size.interval = kOftenest;
    size.since_trial = 0;
  }
  if (size.since_trial < size.interval) {
    size.drafting = size.preferred;
    size.since_trial += kSpell;
    return;
  }
  size.drafting = !size.preferred;
  size.since_trial = 0;
  size.interval = std::min(size.interval * 2, kRarest);
}

void DraftTrials::pass(int64_t sequences, bool prompts, double now) {
  const bool drafting = drafts(sequences);  // settle() may change it for the next pass
  settle();
  kept_ = 0;
  last_ = {.timed = running_ && !prompts,
           .size = size_of(sequences),
           .drafting = drafting,
           .sequences = sequences,
           .seconds = now - end_};
  running_ = true;
  end_ = now;
}

}  // namespace verbatim
