#include <algorithm>
#include <cmath>
#include <memory>

#include "prepare/preparation.h"
#include "prepare/rounded_matrix.h"

namespace verbatim {

namespace {

constexpr int kExponents = 20;
/// The number of outputs of a matrix over which the error is measured.
constexpr int64_t kSampledColumns = 64;

/// Chooses some rows of a matrix, evenly spread.
DenseMatrix sampled(const MatrixSpec& spec, const MatrixRows& rows) {
  DenseMatrix some{.columns = std::min(kSampledColumns, spec.columns()), .k = spec.k, .values = {}};
  some.values.resize(static_cast<size_t>(some.columns * some.k));
  for (int64_t i = 0; i < some.columns; ++i) rows(i * spec.columns() / some.columns, some.row(i));
  return some;
}

/// The factors of the inputs: powers of their magnitudes, scaled so that the product of the largest and the
/// smallest is 1.
std::vector<float> factors_of(std::span<const float> magnitudes, double exponent) {
  std::vector<float> factors;
  constexpr double kLeast = 1e-4;
  for (const float m : magnitudes) {
    factors.push_back(static_cast<float>(std::max(std::pow(static_cast<double>(m), exponent), kLeast)));
  }
  const auto [low, high] = std::minmax_element(factors.begin(), factors.end());
  const float middle = std::sqrt(*low * *high);
  for (float& factor : factors) factor /= middle;
  return factors;
}

/// The sum of the squared errors of the outputs over the samples when the weights are rounded after being
/// multiplied by the factors.
double output_error(const DenseMatrix& weights, const std::vector<float>& factors,
                    Matrix<const float> samples, int bits, ThreadTeam& team) {
  const auto k = static_cast<size_t>(weights.k);
  DenseMatrix scaled = weights;
  for (int64_t column = 0; column < weights.columns; ++column) {
    const std::span<float> row = scaled.row(column);
    for (size_t i = 0; i < k; ++i) row[i] *= factors[i];
  }
  const LinearWeight rounded = pack_to_nearest(scaled, bits, team).weight;
  const PackedMatrix& store = rounded.stores.front();
  std::vector<double> errors(static_cast<size_t>(weights.columns));
  std::vector<float> unpacked(static_cast<size_t>(weights.columns * store.k));
  team.split(weights.columns, [&](int64_t begin, int64_t end) {
    for (int64_t column = begin; column < end; ++column) {
      const std::span<float> row =
          std::span(unpacked).subspan(static_cast<size_t>(column * store.k), static_cast<size_t>(store.k));
      operations(Format::kInt4).unpack_column(store, Reading::kInt4W4A16, column, row);
      const float* const exact = weights.values.data() + static_cast<size_t>(column) * k;
      for (size_t i = 0; i < k; ++i) row[i] = row[i] / factors[i] - exact[i];
      for (int64_t r = 0; r < samples.rows; ++r) {
        const float* const x = samples.row(r);
        float difference = 0.0f;
        for (size_t i = 0; i < k; ++i) difference += row[i] * x[i];
        errors[static_cast<size_t>(column)] += static_cast<double>(difference) * difference;
      }
    }
  });
  double sum = 0.0;
  for (const double error : errors) sum += error;
  return sum;
}

/// The factors of a model's matrices, by the name of the matrix. A matrix has none if no other weights could
/// be divided by them.
using Factors = std::map<std::string, std::vector<float>>;

class AwqFactors {
 public:
  explicit AwqFactors(Factors factors) : factors_(std::move(factors)) {}

  void matrix(const MatrixSpec& spec, DenseMatrix& weights) const {
    if (const std::vector<float>* const own = find(spec.name)) {
      for (int64_t column = 0; column < weights.columns; ++column) {
        const std::span<float> row = weights.row(column);
        for (size_t i = 0; i < row.size(); ++i) row[i] *= (*own)[i];
      }
    }
    // The outputs of this matrix are divided by the factors of the matrix that reads them.
    const int64_t first = first_divided(spec);
    if (const std::vector<float>* const next = reader_of(spec.name)) {
      for (size_t i = 0; i < next->size(); ++i) {
        for (float& w : weights.row(first + static_cast<int64_t>(i))) w /= (*next)[i];
      }
    }
  }

  void vector(const VectorSpec& spec, std::span<float> values) const {
    const std::string layer = spec.name.substr(0, spec.name.rfind('.') + 1);
    const std::vector<float>* factors = nullptr;
    size_t first = 0;
    if (spec.name == "final_norm") factors = find("head");
    if (spec.name == "final_norm_bias") factors = find("head");
    if (spec.name.ends_with("attention_norm")) factors = find(layer + "qkv");
    if (spec.name.ends_with("attention_norm_bias")) factors = find(layer + "qkv");
    if (spec.name.ends_with("mlp_norm")) factors = find(layer + "gate_up");
    if (spec.name.ends_with("mlp_norm_bias")) factors = find(layer + "gate_up");
    if (spec.name.ends_with("qkv_bias")) {
      factors = find(layer + "output");
      first = static_cast<size_t>(spec.parts[0].rows + spec.parts[1].rows);
    }
    if (factors == nullptr) return;
    for (size_t i = 0; i < factors->size(); ++i) values[first + i] /= (*factors)[i];
  }

 private:
  const std::vector<float>* find(const std::string& matrix) const {
    const auto found = factors_.find(matrix);
    return found == factors_.end() ? nullptr : &found->second;
  }
  const std::vector<float>* reader_of(const std::string& matrix) const {
    const std::string layer = matrix.substr(0, matrix.rfind('.') + 1);
    if (matrix.ends_with("qkv")) return find(layer + "output");
    if (matrix.ends_with("gate_up")) return find(layer + "down");
    return nullptr;
  }
  /// The values of `qkv`, the rows of `up` of `gate_up`.
  static int64_t first_divided(const MatrixSpec& spec) { return spec.columns() - spec.parts.back().rows; }

  Factors factors_;
};

}  // namespace

Preparation prepare_awq(const Checkpoint& checkpoint, const MatrixInputs& calibration, int bits,
                        const std::function<void(double)>& progress, const std::function<bool()>& cancelled,
                        ThreadTeam& team) {
  const ModelConfig& config = checkpoint.config;
  Factors factors;
  const std::vector<MatrixSpec> specs = matrix_specs(config);
  for (size_t at = 0; at < specs.size(); ++at) {
    if (cancelled && cancelled()) break;
    const MatrixSpec& spec = specs[at];
    // Values that several query heads share cannot be divided by the different factors of these heads.
    const bool shared = spec.name.ends_with("output") && config.heads != config.kv_heads;
    // Where no norm comes before a part, nothing could be divided but the residual stream itself.
    const bool unnormed = config.block_norms == BlockNorms::kAfter &&
                          (spec.name.ends_with("qkv") || spec.name.ends_with("gate_up"));
    // Between an up matrix without a gate and the down matrix is an activation, which does not commute with
    // factors.
    const bool activated = config.plain_mlp && spec.name.ends_with("down");
    if (!shared && !unnormed && !activated) {
      const InputStatistics& inputs = calibration.at(spec.name);
      const DenseMatrix weights = sampled(spec, matrix_rows(checkpoint, spec));
      double least = INFINITY;
      for (int i = 0; i < kExponents; ++i) {
        std::vector<float> tried = factors_of(inputs.magnitudes, static_cast<double>(i) / kExponents);
        const double error = output_error(weights, tried, inputs.sample_matrix(), bits, team);
        if (error >= least) continue;
        least = error;
        factors[spec.name] = std::move(tried);
      }
    }
    if (progress) progress(static_cast<double>(at + 1) / static_cast<double>(specs.size()));
  }
  const auto awq = std::make_shared<const AwqFactors>(std::move(factors));
  return {.matrix = [awq](const MatrixSpec& spec, DenseMatrix& weights) { awq->matrix(spec, weights); },
          .vector = [awq](const VectorSpec& spec, std::span<float> values) { awq->vector(spec, values); }};
}

}  // namespace verbatim
