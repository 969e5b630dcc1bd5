#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "model/decoder.h"

namespace verbatim {

/// A sequence as the decoding loop sees it. Between steps the cache holds the verified keys and values of
/// every token but the last, which the next pass will evaluate.
struct Sequence {
  std::vector<int32_t> tokens;
  DenseCache cache;
};

/// What it takes to evaluate rows of one sequence.
class Evaluator {
 public:
  Evaluator(const Decoder& decoder, ThreadTeam& team) : decoder_(&decoder), team_(&team) {}

  /// Evaluates the sequence's tokens at positions first .. end - 1 in one pass and returns the logits of the
  /// last `logits_count` of them, valid until the next call.
  Matrix<const float> evaluate(Sequence& sequence, int64_t first, int64_t end, int64_t logits_count,
                               Reading reading);

  const Decoder& decoder() const { return *decoder_; }

 private:
  const Decoder* decoder_;
  ThreadTeam* team_;
  DecoderWorkspace workspace_;
  std::vector<Row> rows_;
};

/// Adds the time from construction to destruction to a counter of seconds.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() {
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace verbatim
