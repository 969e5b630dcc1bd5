#pragma once

#include <limits>
#include <memory>
#include <span>

#include "model/decoder.h"

namespace verbatim {

/// Runs the passes that one sequence wants of a model: alone, or together with those of other sequences.
class PassRunner {
 public:
  virtual ~PassRunner() = default;

  /// Evaluates rows of the sequence, which all have the number 0, as Decoder::forward() does. What it returns
  /// holds until the sequence wants its next pass. A pass that drafts may be declined, where it
  /// promises less than its time is worth: then nothing is evaluated, and there are no logits.
  virtual Matrix<const float> run(std::span<const Row> rows, const PassKind& kind, KvCache& cache,
                                  int64_t first_logits_row) = 0;
  /// After a pass over a tree: makes the path that ends in row `last` the one that the cache holds.
  virtual void keep_path(int64_t last, KvCache& cache) = 0;

  /// The last pass that run() was part of: the rows of all sequences, and how long it took by itself.
  struct PassTiming {
    int64_t rows = 0;
    double seconds = 0;
  };
  virtual PassTiming last_pass() const = 0;
  /// How many tokens the next passes that draft are expected to bring: by that they may be declined.
  struct ExpectedGain {
    double tokens = std::numeric_limits<double>::infinity();
    bool others_waiting = false;  ///< only while others wait to verify already
  };
  virtual void expect_gain(const ExpectedGain& /*gain*/) {}
  /// The probabilities of being kept below which it is not worth what it takes in passes that are shared: to
  /// draft after a token, and to verify one that takes no drafting. 0 while nothing is known.
  struct KeepThresholds {
    double path = 0.0;
    double leaf = 0.0;
  };
  virtual KeepThresholds keep_thresholds() const { return {}; }
  /// Hears how many tokens of a draft were kept, and whether the next was not.
  virtual void observe_draft(int64_t /*kept*/, bool /*cut*/) {}

  virtual const Decoder& decoder() const = 0;
  virtual int threads() const = 0;
  /// Runs the sequence's passes of another model, which outlives it. `small`: with one thread, because a
  /// second would come too late.
  virtual std::unique_ptr<PassRunner> runner_for_draft_model(const Decoder& other, bool small) = 0;
};

/// Runs each pass as it comes.
class SingleRunner : public PassRunner {
 public:
  /// Both outlive the runner.
  SingleRunner(const Decoder& decoder, ThreadTeam& team) : decoder_(&decoder), team_(&team) {}

  Matrix<const float> run(std::span<const Row> rows, const PassKind& kind, KvCache& cache,
                          int64_t first_logits_row) override;
  void keep_path(int64_t last, KvCache& cache) override;
  PassTiming last_pass() const override { return last_; }
  const Decoder& decoder() const override { return *decoder_; }
  int threads() const override { return team_->size(); }
  std::unique_ptr<PassRunner> runner_for_draft_model(const Decoder& other, bool small) override;

 private:
  const Decoder* decoder_;
  ThreadTeam* team_;
  std::unique_ptr<ThreadTeam> one_thread_;
  DecoderWorkspace workspace_;
  PassTiming last_;
};

}  // namespace verbatim
