#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <span>

#include "model/decoder.h"

namespace verbatim {

class PassCosts;

/// Runs the passes of one sequence with one model, each alone or together with those of other sequences.
class PassRunner {
 public:
  virtual ~PassRunner() = default;

  /// Evaluates rows of the sequence as Decoder::forward() does; they all have the sequence number 0. The
  /// logits are valid until the next run(). A drafting pass may be declined if its expected gain is not worth
  /// its time: then nothing is evaluated, and no logits are returned.
  virtual Matrix<const float> run(std::span<const Row> rows, const PassKind& kind, KvCache& cache,
                                  int64_t first_logits_row) = 0;
  /// Makes the cache hold, after a pass over a tree, the path that ends in row `last` of that pass.
  virtual void keep_path(int64_t last, KvCache& cache) = 0;

  /// The size and the time of a pass: the rows of all sequences in it, and its seconds without waiting.
  struct PassTiming {
    int64_t rows = 0;
    double seconds = 0;
    bool prompts = false;  ///< whether rows of prompts were, or may have been, among them
  };
  /// The size and time of the pass that the last run() was part of.
  virtual PassTiming last_pass() const = 0;
  /// What a shared pass knows of a drafting pass that may be declined.
  struct ExpectedGain {
    /// The number of tokens that the pass is expected to gain, without those of an offer.
    double tokens = std::numeric_limits<double>::infinity();
    double otherwise = 0;              ///< the tokens that are gained if the pass is declined
    int64_t drafted = 0;               ///< the tokens that the draft has already
    const PassCosts* costs = nullptr;  ///< the costs of drafting passes; null: unknown
  };
  /// Sets the expected gain of the drafting passes that follow.
  virtual void expect_gain(const ExpectedGain& /*gain*/) {}
  /// A draft of which a shared pass, of the model or of a network with an inner draft, has rows for as many
  /// nodes as are worth their time to the batch.
  struct Offer {
    /// The path probabilities of the nodes that may be left out, in descending order where the pass may be
    /// declined or verifies.
    std::span<const float> paths;
    /// Leaves out all of these nodes but the first `count`. Returns the rows of the pass without them.
    std::function<std::span<const Row>(int64_t count)> keep;
  };
  /// Offers the draft of the next run(), which that run() may make smaller. The offer must be valid until
  /// then.
  virtual void offer(const Offer& /*offer*/) {}
  /// Whether shared passes choose among the drafts that are offered to them now.
  virtual bool chooses() const { return false; }
  /// Gives the costs of passes that verify and of those that draft, by which shared passes are planned. They
  /// must be valid at every later run(); `drafting` is null if no network drafts.
  virtual void plan_by(const PassCosts& /*verifying*/, const PassCosts* /*drafting*/) {}
  /// The smallest probabilities of being kept with which a token is worth its time in shared passes.
  struct KeepThresholds {
    double path = 0.0;  ///< for drafting on after a token
    double leaf = 0.0;  ///< for verifying a token that takes no drafting pass
  };
  /// The keep thresholds that are best for the batch now; 0 while nothing is known.
  virtual KeepThresholds keep_thresholds() const { return {}; }
  /// Whether the sequences that share passes gain by drafts, as far as has been tried. Only sequences of
  /// lossless recipes ask, while they are in a batch.
  virtual bool gains_by_drafts() const { return true; }
  /// Takes in a verified draft: `kept` of its tokens were kept; `cut`: the next one was rejected.
  virtual void observe_draft(int64_t /*kept*/, bool /*cut*/) {}
  /// Takes in that a step kept `kept` tokens beyond its own one, whoever drafted them: drafters, or a
  /// structure that leaves no other text.
  virtual void observe_step(int64_t /*kept*/) {}

  virtual const Decoder& decoder() const = 0;
  virtual int threads() const = 0;
  /// Makes a runner for the sequence's passes of a draft model, which outlives it. A `small` model is
  /// evaluated by one thread, because its passes end before a second thread has woken up.
  virtual std::unique_ptr<PassRunner> runner_for_draft_model(const Decoder& other, bool small) = 0;
};

/// Runs the passes of a sequence that shares none: each at once and by itself.
class SingleRunner : public PassRunner {
 public:
  /// `decoder` and `team` outlive the runner.
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
