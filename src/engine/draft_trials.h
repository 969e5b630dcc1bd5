#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace verbatim {

/// Finds out whether a batch gains by the drafts of lossless recipes: by the tokens per second that it really
/// has with them and without them, for batches of about as many sequences. A planner knows what passes cost,
/// and the pace of a batch guesses it by a straight line; trials also count what neither holds: drafting
/// itself, waking threads, and drafts that disappoint.
///
/// Passes are taken in spells. All passes of a spell have drafts, or none has. Most spells are of the kind
/// that gains; a spell of the other kind is tried now and then, ever more rarely while it keeps losing. A
/// trial is compared with the spells before and after it, since a machine that others use too is fast now and
/// slow then, and the middle one of the last comparisons decides, since one spell may be disturbed. A
/// comparison with a clear winner confirms a preference by itself, and two of them change it.
class DraftTrials {
 public:
  /// Whether sequences should draft before the next pass of a batch of `sequences` sequences.
  bool drafts(int64_t sequences) const;
  /// Takes in a pass over the whole model for `members` of the batch's `sequences` sequences, which ended at
  /// `now`, in seconds from any beginning. Where drafts let sequences fall out of step, passes for a few of
  /// them are part of what drafts cost. `prompts`: parts of prompts were read in it, so that its time says
  /// nothing.
  void pass(int64_t sequences, int64_t members, bool prompts, double now);
  /// Takes in that `tokens` of a draft of the last pass were kept.
  void kept(int64_t tokens) { kept_ += tokens; }
  /// Takes in that the batch did something else, so that the time until the next pass ends says nothing.
  void interrupted();

 private:
  static constexpr int64_t kSpell = 24;       // the number of passes in a spell with drafts
  static constexpr int64_t kPlainSpell = 12;  // without: every sequence then gets one token in each pass
  static constexpr size_t kSizes = 8;         // the last one is of all larger batches, too
  static constexpr int64_t kComparisons = 5;  // how many comparisons are remembered
  static constexpr int64_t kOftenest = 96;    // the smallest number of passes between two trials
  static constexpr int64_t kRarest = 1536;    // the largest

  /// Batches of about as many sequences.
  struct Size {
    bool drafting = true;     // the kind of this spell
    bool preferred = true;    // the kind of the spells that are no trials
    int64_t left = kSpell;    // the passes that this spell still has
    int64_t interval = 0;     // the number of passes between two trials
    int64_t since_trial = 0;  // the passes since the last trial
    double tokens = 0;        // of this spell
    double seconds = 0;       // of this spell
    double before = 0;        // the tokens per second of the last spell that was no trial; 0: none
    double trial = 0;         // of a trial that the next spell will be compared with; 0: none
    int64_t compared = 0;     // the number of comparisons
    std::array<double, kComparisons> gains = {};  // tokens per second with drafts over without, the last ones
  };
  /// A pass whose kept tokens are not all known yet.
  struct Last {
    bool timed = false;  // whether `seconds` is the time since the pass before it
    size_t size = 0;
    bool drafting = false;
    int64_t members = 0;
    double seconds = 0;
  };

  static size_t size_of(int64_t sequences);
  static int64_t spell(bool drafting) { return drafting ? kSpell : kPlainSpell; }
  void settle();
  static void compare(Size& size, double after);
  static void begin_spell(Size& size);

  std::array<Size, kSizes> sizes_;
  Last last_;
  bool running_ = false;  // whether `end_` is when the pass before ended
  double end_ = 0;
  int64_t kept_ = 0;
};

}  // namespace verbatim
