#pragma once

#include <cstdint>

namespace verbatim {

/// What passes take by their rows, lately: a fading average of both, and what one more row takes.
class FadingPassCost {
 public:
  void observe(int64_t rows, double seconds);
  bool known() const { return weight_ > 0.0; }
  /// Seconds of a pass over so many rows,
  double of(double rows) const;
  /// and what a row more adds.
  double row() const;

 private:
  double weight_ = 0.0;
  double rows_ = 0.0;          // averages,
  double seconds_ = 0.0;       //
  double rows_rows_ = 0.0;     // and weighted sums of what rows differ from theirs, squared,
  double rows_seconds_ = 0.0;  // and times what the seconds differ from theirs
};

/// How many tokens a batch of sequences gains by the second, and what of that another draft costs all of
/// them.
///
/// In a batch the rows of a pass share what it takes to read the weights, so that the stop rules made for one
/// sequence are not the best: a token that is rather unlikely to be kept may be worth a row in a pass that
/// takes place anyway, and a likely one is not worth a pass for itself. As long as the next pass over drafts
/// is expected to bring tokens faster than the batch gains them on average, the average rises by it; where it
/// would fall, the drafting ends for all (SPEQ's eq. 1 and 2, accepted tokens over the time of drafting and
/// verifying, for many sequences at once).
class BatchPace {
 public:
  /// Hears that a pass over the whole model has ended at `now` (seconds of any clock),
  void whole_pass(int64_t rows, double seconds, double now);
  /// or one that drafts,
  void draft_pass(int64_t rows, double seconds);
  /// and that a step has brought a sequence so many tokens.
  void step(int64_t appended) { gained_ += static_cast<double>(appended); }
  /// Nothing is under way any more: the time that passes now is not a step's.
  void pause() { last_whole_ = 0.0; }

  /// Whether a pass of so many rows that is expected to bring so many tokens, together with the rows that
  /// verify them, is worth its time. It is while nothing is known.
  bool pays(double tokens, int64_t rows) const;
  /// Nothing need be drafted after a token that is kept with less probability than this: the row that it adds
  /// to the next pass and to the verification would cost more than it brings. 0 while nothing is known.
  double least_path() const;

 private:
  bool known() const { return seconds_ > 0.0 && tokens_ > 0.0; }
  double rate() const { return tokens_ / seconds_; }

  double last_whole_ = 0.0;  // when the last pass over the whole model ended
  double seconds_ = 0.0;     // from one of them to the next, averaged
  double tokens_ = 0.0;      // that sequences gain by one, averaged
  double gained_ = 0.0;      // since the last one
  FadingPassCost whole_;
  FadingPassCost drafts_;
};

}  // namespace verbatim
