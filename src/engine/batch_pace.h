#pragma once

#include <cstdint>

#include "drafting/pass_runner.h"

namespace verbatim {

/// Learns the time of passes of one kind by their number of rows: fading averages of rows and seconds, and
/// the slope of a line through them, which is the time of one more row.
class FadingPassCost {
 public:
  /// Takes in a pass over `rows` rows that took `seconds`.
  void observe(int64_t rows, double seconds);
  /// Makes all passes observed so far count less.
  void fade();
  /// Whether a pass was observed.
  bool known() const { return weight_ > 0.0; }
  /// The expected seconds of a pass over `rows` rows.
  double of(double rows) const;
  /// The seconds that one more row adds to a pass.
  double row() const;

 private:
  double weight_ = 0.0;        // the sum of the weights of all passes
  double rows_ = 0.0;          // the average number of rows
  double seconds_ = 0.0;       // the average of the seconds
  double rows_rows_ = 0.0;     // the weighted sum of (rows - average)²
  double rows_seconds_ = 0.0;  // the weighted sum of (rows - average) · (seconds - average)
};

/// The pace of a batch: the most tokens per second that sequences which share passes can gain. Drafting for
/// one of them must be worth its time at that pace, since it delays all of them.
///
/// In a batch the rows of a pass share the time of reading the weights, so stop rules made for one sequence
/// are not the best: an unlikely token may be worth a row in a pass that takes place anyway, and a likely
/// token is not worth a pass of its own. The pace follows from the times of passes and the share of drafts
/// that is kept: it is the rate with drafts of the best common length, accepted tokens over the time of
/// drafting and verifying (SPEQ's eq. 1 and 2, for many sequences at once). A drafting pass is worth its time
/// if its expected tokens come faster than the pace. Where they would come slower, drafting ends for all
/// sequences of the pass. Planned recipes know more of their costs (worthwhile_rows.h).
class BatchPace {
 public:
  /// Takes in a pass over the whole model: it had `rows` rows and took `seconds`.
  void whole_pass(int64_t rows, double seconds);
  /// Takes in a drafting pass: it had `rows` rows and took `seconds`.
  void draft_pass(int64_t rows, double seconds);
  /// Takes in a verified draft of one sequence: `kept` of its tokens were kept; `cut`: the next was rejected.
  void step(int64_t kept, bool cut);

  /// Whether a drafting pass over `rows` rows pays in a batch of `sequences` sequences: whether its `tokens`
  /// expected tokens are at least the batch's usual gain in the time of the pass and of the `verified` rows
  /// that it adds to the next verification. True while nothing is known, and after many steps without a
  /// drafting pass, because costs and acceptance may have changed since.
  bool pays(double tokens, int64_t rows, int64_t verified, int64_t sequences) const;
  /// Whether so many passes over the whole model came without a drafting pass that one should be tried.
  bool trial_due() const;
  /// The share of drafted tokens that was kept lately, of those whose predecessor was kept.
  double kept() const { return kept_ / (kept_ + cut_); }
  /// The probabilities of being kept below which a token costs a batch of `sequences` sequences more time
  /// than it gains: to draft on after it, and to verify it if it takes no drafting pass. Both are 0 while
  /// nothing is known.
  PassRunner::KeepThresholds keep_thresholds(int64_t sequences) const;

 private:
  double best_rate(int64_t sequences) const;

  FadingPassCost whole_;
  FadingPassCost drafts_;
  double kept_ = 8.0;      // drafted tokens that were kept, a sum in which older ones fade
  double cut_ = 2.0;       // drafts in which a token was rejected, a sum in which older ones fade
  int64_t undrafted_ = 0;  // passes over the whole model since the last drafting pass
};

}  // namespace verbatim
