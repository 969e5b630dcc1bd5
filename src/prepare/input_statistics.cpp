#include "prepare/input_statistics.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kv/dense.h"
#include "model/decoder.h"

namespace verbatim {

namespace {

/// Adds up the statistics of the inputs of one matrix.
class Gatherer {
 public:
  Gatherer(int64_t inputs, int64_t sample_rows)
      : inputs_(inputs),
        sample_rows_(sample_rows),
        magnitudes_(static_cast<size_t>(inputs)),
        squares_(static_cast<size_t>(inputs)) {}

  /// Rows `first` .. of `total` of the whole text.
  void add(Matrix<const float> x, int64_t first, int64_t total) {
    for (int64_t r = 0; r < x.rows; ++r) {
      const float* const row = x.row(r);
      for (int64_t i = 0; i < inputs_; ++i) {
        const double value = row[i];
        magnitudes_[static_cast<size_t>(i)] += std::fabs(value);
        squares_[static_cast<size_t>(i)] += value * value;
      }
      // Samples are spread evenly over the text: a row is taken where the wanted number of samples grows by
      // one.
      const int64_t at = first + r;
      const int64_t wanted = std::min(sample_rows_, total);
      if ((at + 1) * wanted / total > at * wanted / total)
        samples_.insert(samples_.end(), row, row + inputs_);
    }
    rows_ += x.rows;
  }

  InputStatistics statistics() const {
    InputStatistics result;
    const double rows = static_cast<double>(std::max<int64_t>(rows_, 1));
    for (const double sum : magnitudes_) result.magnitudes.push_back(static_cast<float>(sum / rows));
    for (const double sum : squares_) result.squares.push_back(static_cast<float>(sum / rows));
    result.samples = samples_;
    result.sample_rows = std::ssize(samples_) / inputs_;
    return result;
  }

 private:
  int64_t inputs_;
  int64_t sample_rows_;
  std::vector<double> magnitudes_;
  std::vector<double> squares_;
  std::vector<float> samples_;
  int64_t rows_ = 0;
};

}  // namespace

MatrixInputs gather_inputs(const Checkpoint& checkpoint, std::span<const int32_t> tokens,
                           const InputStatisticsOptions& options, ThreadTeam& team) {
  if (tokens.empty()) bad_input("the calibration text is empty: give some pages of text like that to come");
  std::vector<std::string> not_finite;
  LoadOptions load;
  if (options.progress) load.progress = [&](double fraction) { options.progress(0.3 * fraction); };
  const Decoder decoder(checkpoint.config, pack_weights(checkpoint, load, team, not_finite));

  const std::vector<MatrixSpec> specs = matrix_specs(checkpoint.config);
  std::vector<Gatherer> gatherers;
  std::map<const LinearWeight*, size_t> index;
  each_matrix(decoder.weights(), [&](const LinearWeight& weight) {
    const size_t at = index.size();
    index[&weight] = at;
    gatherers.emplace_back(weight.k, options.sample_rows);
  });

  const int64_t total = std::ssize(tokens);
  const int64_t window = std::min<int64_t>(options.window, checkpoint.config.context);
  DenseCache cache(decoder.cache_shape(), window);
  KvCache* const caches[] = {&cache};
  DecoderWorkspace workspace;
  int64_t first = 0;
  const std::function<void(const LinearWeight&, Matrix<const float>)> gather = [&](const LinearWeight& weight,
                                                                                   Matrix<const float> x) {
    gatherers[index.at(&weight)].add(x, first, total);
  };
  PassKind kind(Reading::kFull);
  kind.inputs = &gather;
  std::vector<Row> rows;
  for (; first < total; first += window) {
    if (options.cancelled && options.cancelled()) break;
    const int64_t count = std::min(window, total - first);
    rows.clear();
    for (int32_t i = 0; i < count; ++i) {
      rows.push_back({.sequence = 0, .position = i, .token = tokens[static_cast<size_t>(first + i)]});
    }
    cache.set_length(0);
    decoder.forward(rows, kind, caches, 0, workspace, team);
    if (options.progress)
      options.progress(0.3 + 0.7 * static_cast<double>(first + count) / static_cast<double>(total));
  }

  MatrixInputs calibration;
  for (size_t i = 0; i < specs.size(); ++i) calibration[specs[i].name] = gatherers[i].statistics();
  return calibration;
}

}  // namespace verbatim
