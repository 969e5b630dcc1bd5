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

/// What a matrix is multiplied with while the model reads a text.
struct InputStatistics {
  std::vector<float> magnitudes;  ///< the mean of |x| of each input
  std::vector<float> squares;     ///< the mean of x² of each input
  std::vector<float> samples;     ///< [sample_rows][inputs]: some of the rows, from the whole text
  int64_t sample_rows = 0;

  int64_t inputs() const { return static_cast<int64_t>(squares.size()); }
  Matrix<const float> sample_matrix() const { return {samples.data(), sample_rows, inputs()}; }
};

/// By the name of the matrix (MatrixSpec).
using MatrixInputs = std::map<std::string, InputStatistics>;

struct InputStatisticsOptions {
  int64_t window = 512;                       ///< tokens that see one another
  int64_t sample_rows = 64;                   ///< at most so many are kept
  std::function<void(double)> progress = {};  ///< told the fraction done
  std::function<bool()> cancelled = {};       ///< true ends the work: what was gathered is returned
};

/// Lets the model, in its own precision, read `tokens`, of which there must be at least one, and gathers what
/// its matrices are multiplied with.
MatrixInputs gather_inputs(const Checkpoint& checkpoint, std::span<const int32_t> tokens,
                           const InputStatisticsOptions& options, ThreadTeam& team);

}  // namespace verbatim
