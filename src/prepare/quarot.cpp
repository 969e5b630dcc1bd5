#include <algorithm>
#include <memory>

#include "base/philox.h"
#include "model/hadamard.h"
#include "prepare/preparation.h"

namespace verbatim {

namespace {

/// Whether a vector is the gain of a norm of the residual stream.
bool reads_the_stream(const std::string& vector) {
  return vector == "final_norm" || vector.ends_with(".attention_norm") || vector.ends_with(".mlp_norm");
}

/// The rotations of one model.
class Rotations {
 public:
  explicit Rotations(const Checkpoint& checkpoint)
      : config_(checkpoint.config),
        hidden_(config_.hidden_size),
        inner_(config_.intermediate_size),
        heads_(config_.heads),
        head_(config_.head_dim) {
    for (int32_t i = 0; i < config_.hidden_size; ++i) {
      constexpr uint32_t kKey = 0x5157;
      const bool negative = (philox({static_cast<uint32_t>(i), 0, 0, 0}, {kKey, 0})[0] & 1) != 0;
      signs_.push_back(negative ? -1.0f : 1.0f);
    }
    std::vector<std::string> ignored;
    for (const VectorSpec& spec : vector_specs(config_)) {
      if (!reads_the_stream(spec.name)) continue;
      const Buffer<float> gain = read_vector(checkpoint, spec, ignored);
      gains_[spec.name].assign(gain.data(), gain.data() + spec.length());
    }
  }

  /// Rotates a row vector of the residual stream, or of weights that read it.
  void rotate_hidden(std::span<float> row) const {
    for (size_t i = 0; i < signs_.size(); ++i) row[i] *= signs_[i];
    hidden_.forward(row.data());
  }

  void matrix(const MatrixSpec& spec, DenseMatrix& weights) const {
    const std::string name = spec.name;
    if (const std::vector<float>* const gain = gain_before(name)) {
      for (int64_t column = 0; column < weights.columns; ++column) {
        const std::span<float> row = weights.row(column);
        for (size_t i = 0; i < row.size(); ++i) row[i] *= (*gain)[i];
        rotate_hidden(row);
      }
    }
    if (name.ends_with("qkv")) {
      const int64_t first = spec.parts[0].rows + spec.parts[1].rows;
      for (int64_t column = first; column < weights.columns; column += config_.head_dim) {
        head_.forward(weights.row(column).data(), weights.k);
      }
    } else if (name.ends_with("output")) {
      for (int64_t column = 0; column < weights.columns; ++column) {
        float* const row = weights.row(column).data();
        for (int32_t h = 0; h < config_.heads; ++h) head_.forward(row + int64_t{h} * config_.head_dim);
        heads_.forward(row, config_.head_dim);
      }
      rotate_outputs(weights);
    } else if (name.ends_with("down")) {
      for (int64_t column = 0; column < weights.columns; ++column) inner_.forward(weights.row(column).data());
      rotate_outputs(weights);
    }
  }

  void vector(const VectorSpec& spec, std::span<float> values) const {
    if (gains_.contains(spec.name)) std::fill_n(values.begin(), spec.length(), 1.0f);
    if (!spec.name.ends_with("qkv_bias")) return;
    for (int64_t i = spec.parts[0].rows + spec.parts[1].rows; i < spec.length(); i += config_.head_dim) {
      head_.forward(values.data() + i);
    }
  }

 private:
  void rotate_outputs(DenseMatrix& weights) const {
    for (int64_t column = 0; column < weights.columns; ++column) {
      for (float& w : weights.row(column)) w *= signs_[static_cast<size_t>(column)];
    }
    hidden_.forward(weights.values.data(), weights.k);
  }

  /// The gain of the norm that a matrix reads from, or null.
  const std::vector<float>* gain_before(const std::string& matrix) const {
    if (matrix == "head") return &gains_.at("final_norm");
    const std::string layer = matrix.substr(0, matrix.rfind('.') + 1);
    if (matrix.ends_with("qkv")) return &gains_.at(layer + "attention_norm");
    if (matrix.ends_with("gate_up")) return &gains_.at(layer + "mlp_norm");
    return nullptr;
  }

  const ModelConfig config_;
  Hadamard hidden_;
  Hadamard inner_;
  Hadamard heads_;
  Hadamard head_;
  std::vector<float> signs_;
  std::map<std::string, std::vector<float>> gains_;
};

}  // namespace

Preparation prepare_quarot(const Checkpoint& checkpoint) {
  const auto rotations = std::make_shared<const Rotations>(checkpoint);
  return {.matrix = [rotations](const MatrixSpec& spec,
                                DenseMatrix& weights) { rotations->matrix(spec, weights); },
          .vector = [rotations](const VectorSpec& spec,
                                std::span<float> values) { rotations->vector(spec, values); },
          .embedding = [rotations](std::span<float> row) { rotations->rotate_hidden(row); }};
}

}  // namespace verbatim
