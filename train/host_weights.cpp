#include "host_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/decoder.h"
#include "model/rope.h"

namespace verbatim::train {

namespace {

/// The beginning of the names of a layer's specs.
std::string prefix_of(int32_t layer) {
  return layer < 0 ? "" : fmt::format("layers.{}.", layer);
}

bool belongs(const std::string& name, int32_t layer) {
  return layer < 0 ? !name.starts_with("layers.") : name.starts_with(prefix_of(layer));
}

void refuse_not_finite(const Checkpoint& checkpoint, const std::vector<std::string>& names) {
  if (names.empty()) return;
  bad_input("{}: tensor {} holds NaN or infinity, so that the loss has no gradient", checkpoint.path.string(),
            names.front());
}

std::vector<float> vector_values(const Checkpoint& checkpoint, const VectorSpec& spec) {
  std::vector<std::string> not_finite;
  const Buffer<float> values = read_vector(checkpoint, spec, not_finite);
  refuse_not_finite(checkpoint, not_finite);
  return {values.data(), values.data() + spec.length()};
}

template <typename T>
HostMatrix<T> matrix_values(const Checkpoint& checkpoint, const MatrixSpec& spec, ThreadTeam& team) {
  HostMatrix<T> matrix{spec.columns(), spec.k, {}};
  matrix.values.resize(static_cast<size_t>(matrix.rows * matrix.columns));
  const MatrixRows rows = matrix_rows(checkpoint, spec);
  std::vector<std::vector<float>> rooms(static_cast<size_t>(team.size()),
                                        std::vector<float>(static_cast<size_t>(spec.k)));
  std::vector<char> finite(rooms.size(), 1);
  team.run([&](int member, int size) {
    std::vector<float>& row = rooms[static_cast<size_t>(member)];
    for (int64_t r = matrix.rows * member / size; r < matrix.rows * (member + 1) / size; ++r) {
      rows(r, row);
      std::copy(row.begin(), row.end(), matrix.values.begin() + r * spec.k);
      if (!std::all_of(row.begin(), row.end(), [](float w) { return std::isfinite(w); })) {
        finite[static_cast<size_t>(member)] = 0;
      }
    }
  });
  if (std::ranges::count(finite, 0) > 0) {
    refuse_not_finite(checkpoint, {spec.parts.size() == 1
                                       ? spec.parts.front().tensor
                                       : fmt::format("{} (with its neighbours)", spec.parts.front().tensor)});
  }
  return matrix;
}

/// Fills in what sets a layer apart from others.
template <typename T>
void add_kind(const ModelConfig& config, int32_t layer, int64_t rows, HostWeights<T>& weights) {
  const LayerKind kind = layer_kinds(config)[static_cast<size_t>(layer)];
  weights.window = kind.window;
  if (!kind.rotates) return;
  const RotaryEmbedding rope = RotaryEmbedding::all_of(config)[kind.rope];
  weights.pairs = rope.half();
  std::vector<float> cosine(static_cast<size_t>(rope.half()));
  std::vector<float> sine(cosine.size());
  for (int64_t position = 0; position < rows; ++position) {
    rope.angles(position, cosine.data(), sine.data());
    weights.cosines.insert(weights.cosines.end(), cosine.begin(), cosine.end());
    weights.sines.insert(weights.sines.end(), sine.begin(), sine.end());
  }
}

}  // namespace

std::vector<MatrixSpec> specs_of_layer(const ModelConfig& config, int32_t layer) {
  std::vector<MatrixSpec> specs = matrix_specs(config);
  std::erase_if(specs, [layer](const MatrixSpec& spec) { return !belongs(spec.name, layer); });
  return specs;
}

template <typename T>
HostWeights<T> read_host_weights(const Checkpoint& checkpoint, int32_t layer, int64_t rows,
                                 ThreadTeam& team) {
  HostWeights<T> weights;
  const size_t prefix = prefix_of(layer).size();
  for (const MatrixSpec& spec : specs_of_layer(checkpoint.config, layer)) {
    weights.matrices.emplace(spec.name.substr(prefix), matrix_values<T>(checkpoint, spec, team));
  }
  for (const VectorSpec& spec : vector_specs(checkpoint.config)) {
    if (!belongs(spec.name, layer) || spec.name == "positions") continue;
    const std::vector<float> values = vector_values(checkpoint, spec);
    weights.vectors.emplace(spec.name.substr(prefix), std::vector<T>(values.begin(), values.end()));
  }
  if (layer >= 0) add_kind(checkpoint.config, layer, rows, weights);
  return weights;
}

std::vector<float> read_positions(const Checkpoint& checkpoint) {
  for (const VectorSpec& spec : vector_specs(checkpoint.config)) {
    if (spec.name == "positions") return vector_values(checkpoint, spec);
  }
  return {};
}

template <typename T>
std::vector<T> embed(const Checkpoint& checkpoint, const std::vector<float>& positions,
                     std::span<const int32_t> tokens) {
  const TensorView embedding = embedding_of(checkpoint);
  const auto hidden = static_cast<size_t>(checkpoint.config.hidden_size);
  std::vector<T> stream(tokens.size() * hidden);
  std::vector<float> row(hidden);
  for (size_t r = 0; r < tokens.size(); ++r) {
    embedding.read_row(tokens[r], row);
    for (size_t i = 0; i < hidden; ++i) {
      const float learned = positions.empty() ? 0.0f : positions[r * hidden + i];
      stream[r * hidden + i] = static_cast<T>((row[i] + learned) * checkpoint.config.scales.embedding);
    }
  }
  return stream;
}

template HostWeights<float> read_host_weights(const Checkpoint&, int32_t, int64_t, ThreadTeam&);
template HostWeights<double> read_host_weights(const Checkpoint&, int32_t, int64_t, ThreadTeam&);
template std::vector<float> embed(const Checkpoint&, const std::vector<float>&, std::span<const int32_t>);
template std::vector<double> embed(const Checkpoint&, const std::vector<float>&, std::span<const int32_t>);

}  // namespace verbatim::train
