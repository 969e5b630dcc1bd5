#include "activations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/new_file.h"
#include "host_weights.h"
#include "model/sensitivity_origin.h"
#include "prepare/input_statistics.h"
#include "tensor_rows.h"

namespace verbatim::train {

namespace {

/// The mean squares of the inputs of all matrices; nothing if the work was cancelled.
std::optional<MatrixInputs> mean_squares(const Checkpoint& checkpoint,
                                         const std::vector<std::vector<int32_t>>& samples,
                                         const FisherOptions& options) {
  // The last token of a sequence is predicted, and predicts nothing.
  const int64_t rows = std::ssize(samples.front()) - 1;
  std::vector<int32_t> tokens;
  for (const std::vector<int32_t>& sample : samples) {
    tokens.insert(tokens.end(), sample.begin(), sample.begin() + rows);
  }
  InputStatisticsOptions gather{.window = rows, .sample_rows = 0, .cancelled = options.cancelled};
  if (options.progress) {
    gather.progress = [&](double fraction) { options.progress("reading the samples", fraction); };
  }
  ThreadTeam team(options.threads);
  MatrixInputs inputs = gather_inputs(checkpoint, tokens, gather, team);
  if (options.cancelled && options.cancelled()) return std::nullopt;
  return inputs;
}

/// The sensitivities of one layer, or with -1 of the output matrix.
SquareSums layer_squares(const Checkpoint& checkpoint, int32_t layer, const MatrixInputs& inputs) {
  SquareSums squares(checkpoint.config, layer);
  for (const MatrixSpec& spec : specs_of_layer(checkpoint.config, layer)) {
    const std::vector<float>& row = inputs.at(spec.name).squares;
    if (!std::ranges::all_of(row, [](float value) { return std::isfinite(value); })) {
      bad_input("{}: the inputs of tensor {} are not finite", checkpoint.path.string(),
                spec.parts.front().tensor);
    }
    squares.fill_rows(spec.name, row);
  }
  return squares;
}

}  // namespace

std::optional<FisherReport> write_activations(const Checkpoint& checkpoint,
                                              const std::vector<std::vector<int32_t>>& samples,
                                              const std::filesystem::path& file,
                                              const FisherOptions& options) {
  require_free_name(file);
  const std::optional<MatrixInputs> inputs = mean_squares(checkpoint, samples, options);
  if (!inputs) return std::nullopt;
  const ModelConfig& config = checkpoint.config;
  std::vector<int32_t> layers;
  for (int32_t layer = 0; layer < config.layers; ++layer) layers.push_back(layer);
  if (options.output_matrix) layers.push_back(-1);
  std::vector<TensorEntry> entries;
  for (const int32_t layer : layers) {
    for (const TensorEntry& entry : sensitivity_entries(config, layer)) entries.push_back(entry);
  }
  NewFile out(file);
  out.out().write(safetensors_header(entries, {{kMeasure, "activation"},
                                               {kTextDigest, options.text_digest},
                                               {kSampleCount, fmt::to_string(options.samples.samples)},
                                               {kSampleLength, fmt::to_string(options.samples.length)},
                                               {kSampleSeed, fmt::to_string(options.samples.seed)},
                                               {kWeightSketch, sketch_text(checkpoint)}}));
  FisherReport report;
  for (const int32_t layer : layers) {
    const SquareSums squares = layer_squares(checkpoint, layer, *inputs);
    out.out().write(std::as_bytes(squares.values()));
    for (size_t i = 0; i < squares.entries().size(); ++i) {
      const int64_t zeros = std::ranges::count(squares.values(i), 0.0f);
      report.weights += std::ssize(squares.values(i));
      report.zeros += zeros;
      if (zeros == std::ssize(squares.values(i))) report.none.push_back(squares.entries()[i].name);
    }
  }
  out.keep();
  return report;
}

}  // namespace verbatim::train
