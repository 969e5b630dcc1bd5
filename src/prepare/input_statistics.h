#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/matrix.h"
#include "base/thread_team.h"
#include "checkpoint/checkpoint.h"

namespace verbatim {

/// Statistics of the inputs of a matrix while the model reads a text.
struct InputStatistics {
  std::vector<float> magnitudes;  ///< the mean of |x| of each input
  std::vector<float> squares;     ///< the mean of x² of each input
  std::vector<float> samples;     ///< [sample_rows][inputs]: the inputs of some rows, spread over the text
  int64_t sample_rows = 0;

  int64_t inputs() const { return static_cast<int64_t>(squares.size()); }
  Matrix<const float> sample_matrix() const { return {samples.data(), sample_rows, inputs()}; }
};

/// The statistics of all matrices, by the name of the matrix (MatrixSpec).
using MatrixInputs = std::map<std::string, InputStatistics>;

struct InputStatisticsOptions {
  int64_t window = 512;                       ///< the number of tokens of the text that see one another
  int64_t sample_rows = 64;                   ///< the most rows that are kept as samples
  std::function<void(double)> progress = {};  ///< called with the fraction done
  std::function<bool()> cancelled = {};       ///< true ends the work with the statistics gathered so far
};

/// Gathers statistics: evaluates `tokens`, at least one, with the model in its own precision, and observes
/// the inputs of all matrices.
MatrixInputs gather_inputs(const Checkpoint& checkpoint, std::span<const int32_t> tokens,
                           const InputStatisticsOptions& options, ThreadTeam& team);

}  // namespace verbatim
