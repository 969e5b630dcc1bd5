#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace verbatim {

/// Finds out whether a batch gains by the drafts of planned recipes: by the tokens per second that it really
/// has with them and without them, for batches of about as many sequences. A planner knows what passes cost;
/// this also counts what no table of costs holds: drafting itself, waking threads, and drafts that
/// disappoint.
///
/// Passes are taken in spells. All passes of a spell have drafts, or none has. Most spells are of the better
/// kind; the other kind is tried now and then, ever more rarely while it keeps losing.
class DraftTrials {
 public:
  /// Whether sequences should draft before the next pass of a batch of `sequences` sequences.
  bool drafts(int64_t sequences) const;
  /// Takes in a pass over the whole model for all `sequences` sequences of the batch, which ended at `now`,
  /// in seconds from any beginning. `prompts`: parts of prompts were read in it, so that its time says
  /// nothing.
  void pass(int64_t sequences, bool prompts, double now);
  /// Takes in that `tokens` of a draft of the last pass were kept.
  void kept(int64_t tokens) { kept_ += tokens; }
  /// Takes in that a pass took place that was not for all sequences: the time until the next one ends says
  /// nothing either.
  void interrupted();

 private:
  static constexpr int64_t kSpell = 24;  // the number of passes in a spell
  static constexpr size_t kSizes = 8;    // the last one is of all larger batches, too

  struct Rate {
    double tokens = 0;   // a sum in which older spells fade
    double seconds = 0;  // the time that they took, faded alike
    bool known() const { return seconds > 0; }
    double value() const { return tokens / seconds; }
  };
  /// Batches of about as many sequences.
  struct Size {
    bool drafting = true;       // the kind of this spell
    bool preferred = true;      // the kind of the spells that are no trials
    int64_t left = kSpell;      // the passes that this spell still has
    int64_t interval = 0;       // the number of passes between two trials
    int64_t since_trial = 0;    // the passes since the last trial
    double tokens = 0;          // of this spell
    double seconds = 0;         // of this spell
    std::array<Rate, 2> rates;  // without and with drafts
  };
  /// A pass whose kept tokens are not all known yet.
  struct Last {
    bool timed = false;  // whether `seconds` is the time since the pass before it
    size_t size = 0;
    bool drafting = false;
    int64_t sequences = 0;
    double seconds = 0;
  };

  static size_t size_of(int64_t sequences);
  void settle();
  static void begin_spell(Size& size);

  std::array<Size, kSizes> sizes_;
  Last last_;
  bool running_ = false;  // whether `end_` is when the pass before ended
  double end_ = 0;
  int64_t kept_ = 0;
};

}  // namespace verbatim
