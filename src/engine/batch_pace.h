#pragma once

#include <cstdint>

#include "speculation/pass_runner.h"

namespace verbatim {

/// What passes take by their rows, lately: a fading average of both, and what one more row takes.
class FadingPassCost {
 public:
  void observe(int64_t rows, double seconds);
  /// Makes what is known count less.
  void fade();
  bool known() const { return weight_ > 0.0; }
  /// Seconds of a pass over so many rows,
  double of(double rows) const;
  /// and what a row more adds.
  double row() const;

 private:
  double weight_ = 0.0;
  double rows_ = 0.0;          // the average of the rows,
  double seconds_ = 0.0;       // and of the seconds,
  double rows_rows_ = 0.0;     // and weighted sums of what rows differ from theirs, squared,
  double rows_seconds_ = 0.0;  // and times what the seconds differ from theirs
};

/// How many tokens sequences that share passes can gain by the second, and what of that another draft costs
/// all of them.
///
/// In a batch the rows of a pass share what it takes to read the weights, so that the stop rules made for one
/// sequence are not the best: a token that is rather unlikely to be kept may be worth a row in a pass that
/// takes place anyway, and a likely one is not worth a pass for itself. From what passes take and how many
/// drafts are kept follows what the batch gains with drafts of the best common length (SPEQ's eq. 1 and 2,
/// accepted tokens over the time of drafting and verifying, for many sequences at once). A pass over drafts
/// that is expected to bring tokens faster than that is worth its time; where it would bring them slower, the
/// drafting ends for all.
class BatchPace {
 public:
  /// Hears what a pass over the whole model has taken,
  void whole_pass(int64_t rows, double seconds);
  /// or one that drafts,
  void draft_pass(int64_t rows, double seconds);
  /// and how many tokens of a sequence's draft were kept, and whether it was cut short there.
  void step(int64_t kept, bool cut);

  /// Whether a pass of so many rows that is expected to bring so many tokens, together with those of the rows
  /// that would be verified, is worth the time of so many sequences. It is while nothing is known, and when
  /// nobody has drafted for long, for what a draft takes and brings may have changed.
  bool pays(double tokens, int64_t rows, int64_t verified, int64_t sequences) const;
  /// Nothing need be drafted after a token, or verified that took no drafting, which is kept with less
  /// probability than this: the rows would cost so many sequences more than they bring.
  PassRunner::KeepThresholds keep_thresholds(int64_t sequences) const;

 private:
  double kept() const { return kept_ / (kept_ + cut_); }
  double best_rate(int64_t sequences) const;

  FadingPassCost whole_;
  FadingPassCost drafts_;
  double kept_ = 8.0;      // drafted tokens that were kept, lately,
  double cut_ = 2.0;       // and that were not though those before them were
  int64_t undrafted_ = 0;  // passes over the whole model since one that drafted
};

}  // namespace verbatim
