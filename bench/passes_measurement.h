#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "model/decoder.h"

namespace verbatim::bench {

/// What to measure and for how long.
struct PassBenchPlan {
  Reading reading = Reading::kFull;
  int32_t experts = 0;        ///< the experts that a row goes through; 0: as many as the model uses
  std::vector<int64_t> rows;  ///< rows of one sequence per pass, each a case of its own
  int64_t context = 0;        ///< tokens of the sequence before these rows
  int64_t prompt_tokens = 0;  ///< of the prefill; 0 leaves it out
  int64_t prefill_chunk = 1;  ///< rows per pass of the prefill
  double seconds = 1.0;       ///< per case
  int min_rounds = 7;         ///< however long they take
  int64_t working_set = 0;    ///< bytes of the buffer for the read bandwidth
};

/// Passes over so many rows. The numbers are medians over rounds.
struct PassResult {
  int64_t rows = 0;
  int rounds = 0;
  double seconds = 0;        ///< one pass with the logits of all its rows
  int64_t weight_bytes = 0;  ///< the bytes of the weights that the pass reads, of experts those wanted
  double gbs = 0;            ///< these bytes over the seconds
  double bandwidth_gbs = 0;  ///< of the sweeps before and after each of the passes
  double fraction = 0;       ///< of the read bandwidth: the median of the rounds' ratios
  std::optional<double> to_one_row;  ///< its time to that of one row, where that was measured
};

/// A prompt's evaluation up to the logits of its last token.
struct PrefillResult {
  int64_t tokens = 0;
  int rounds = 0;
  double seconds = 0;
  double tokens_per_second = 0;
  double tflops = 0;  ///< of the products with weights
};

struct PassBenchReport {
  double read_bandwidth_gbs = 0;
  int64_t weight_bytes = 0;       ///< stored bytes of all matrices in this reading
  std::vector<Reading> readings;  ///< what the reading means for the matrices
  std::vector<PassResult> passes;
  std::optional<PrefillResult> prefill;
};

/// A pass over so many rows of one sequence in a reading.
struct PassCase {
  Reading reading = Reading::kFull;
  int64_t rows = 1;
};

/// The median seconds of each case, all of them in turns, after `context` tokens.
std::vector<double> pass_seconds(const Decoder& decoder, const std::vector<PassCase>& cases, int64_t context,
                                 double seconds_per_case, int min_rounds, ThreadTeam& team,
                                 const std::function<void(double)>& progress);

/// The token that stands at a position where it does not matter which: always the same one.
int32_t bench_token(int64_t position, const Decoder& decoder);

/// Measures the passes, and then the prefill. Throws Error(kUsage) when the decoder's weights lack the
/// reading. `progress` hears the fraction that is done.
PassBenchReport measure_passes(const Decoder& decoder, const PassBenchPlan& plan, ThreadTeam& team,
                               const std::function<void(double)>& progress);

}  // namespace verbatim::bench
