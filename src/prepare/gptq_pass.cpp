#include "prepare/gptq_pass.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "base/available_memory.h"
#include "base/error.h"
#include "kv/dense.h"
#include "model/decoder.h"
#include "prepare/gptq.h"

namespace verbatim {

namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

/// Ends a pass from within.
struct Cancelled {};

/// Rounds the matrices of a decoder, one after the other.
class Rounding {
 public:
  Rounding(const Checkpoint& checkpoint, const GptqPassOptions& options, Decoder& decoder, ThreadTeam& team)
      : checkpoint_(checkpoint), options_(options), team_(team), specs_(matrix_specs(checkpoint.config)) {
    for (const MatrixSpec& spec : specs_) {
      LinearWeight& weight = matrix_of(decoder.weights(), spec.name);
      places_[&weight] = {&weight, &spec};
    }
  }

  /// Rounds the matrix, given all its inputs.
  void round(const LinearWeight& matrix, Matrix<const float> x) {
    if (options_.cancelled && options_.cancelled()) throw Cancelled();
    const auto& [weight, spec] = places_.at(&matrix);
    DenseMatrix dense{.columns = spec->columns(), .k = spec->k, .values = {}};
    dense.values.resize(static_cast<size_t>(dense.columns * dense.k));
    const MatrixRows rows = matrix_rows(checkpoint_, *spec);
    team_.split(dense.columns, [&](int64_t begin, int64_t end) {
      for (int64_t column = begin; column < end; ++column) rows(column, dense.row(column));
    });
    PackResult packed =
        pack_rounded(dense, round_by_gptq(dense, hessian_of(x, spec->k), options_.bits, team_), team_);
    *weight = std::move(packed.weight);
    finite_[spec->name] = packed.finite;
    if (options_.progress) {
      options_.progress(static_cast<double>(finite_.size()) / static_cast<double>(specs_.size()));
    }
  }

  /// Takes the rounded matrices out of the decoder.
  RoundedWeights take() {
    RoundedWeights rounded;
    for (const auto& [place, matrix] : places_) {
      const auto& [weight, spec] = matrix;
      rounded[spec->name] = {.weight = std::move(*weight), .finite = finite_.at(spec->name)};
    }
    return rounded;
  }

 private:
  SquareMatrix hessian_of(Matrix<const float> x, int64_t k) {
    SquareMatrix hessian(k);
    add_outer_products(hessian, x, team_);
    for (int64_t i = 0; i < k; ++i) {
      if (!std::isfinite(hessian.row(i)[i])) return SquareMatrix(k);
    }
    return hessian;
  }

  struct Place {
    LinearWeight* weight;
    const MatrixSpec* spec;
  };

  const Checkpoint& checkpoint_;
  const GptqPassOptions& options_;
  ThreadTeam& team_;
  std::vector<MatrixSpec> specs_;
  std::map<const LinearWeight*, Place> places_;
  std::map<std::string, bool> finite_;
};

int64_t window_of(const ModelConfig& config, int64_t window) {
  return std::min<int64_t>(window, config.context);
}

void require_memory(const ModelConfig& config, int64_t tokens, int64_t window) {
  const auto need = static_cast<double>(gptq_pass_memory(config, tokens, window));
  const std::optional<int64_t> memory = available_memory();
  if (!memory || need <= static_cast<double>(*memory)) return;
  fail(
      ErrorKind::kMachine,
      "gptq takes {:.1f} GiB of memory besides the model for {} tokens of text, and {:.1f} GiB are free: use "
      "fewer calibration tokens, or a machine with more",
      need / kGiB, tokens, static_cast<double>(*memory) / kGiB);
}

}  // namespace

int64_t gptq_pass_memory(const ModelConfig& config, int64_t tokens, int64_t window) {
  const int64_t queries = int64_t{config.heads} * config.head_dim;
  const int64_t inner = config.intermediate_size;
  const int64_t widest = std::max(
      {queries + 2 * int64_t{config.kv_heads} * config.head_dim, int64_t{config.hidden_size}, 2 * inner});
  const int64_t inputs = std::max({queries, inner, int64_t{config.hidden_size}});
  // The stream twice, results and inputs of a matrix, and the inputs in BF16.
  const int64_t of_token =
      4 * (2 * int64_t{config.hidden_size} + widest + inputs + 2 * config.head_dim) + 2 * (inputs + queries);
  const int64_t windows = ceil_div(tokens, window_of(config, window));
  const int64_t cache = DenseCache::bytes_of({config.layers, config.kv_heads, config.head_dim},
                                             round_up<int64_t>(window_of(config, window), kAttentionChunk));
  const int64_t largest = std::max(widest, int64_t{config.vocab_size}) * int64_t{config.hidden_size};
  const int64_t matrix = 6 * std::max(largest, inner * int64_t{config.hidden_size});  // floats, codes, packed
  return tokens * of_token + windows * cache + 3 * 8 * inputs * inputs + matrix;
}

std::optional<RoundedWeights> round_in_pass(const Checkpoint& checkpoint, std::span<const int32_t> tokens,
                                            const GptqPassOptions& options, ThreadTeam& team) {
  if (tokens.empty()) bad_input("the calibration text is empty: give some pages of text like that to come");
  require_memory(checkpoint.config, std::ssize(tokens), options.window);
  std::vector<std::string> not_finite;
  Decoder decoder(checkpoint.config, pack_weights(checkpoint, {}, team, not_finite));
  Rounding rounding(checkpoint, options, decoder, team);
  const std::function<void(const LinearWeight&, Matrix<const float>)> round =
      [&](const LinearWeight& weight, Matrix<const float> x) { rounding.round(weight, x); };
  PassKind kind(Reading::kFull);
  kind.inputs = &round;
  kind.hidden_states = true;  // the inputs of the output matrix, which is rounded last

  const auto window = static_cast<size_t>(window_of(checkpoint.config, options.window));
  std::deque<DenseCache> memory;
  std::vector<KvCache*> caches;
  std::vector<Row> rows;
  for (size_t first = 0; first < tokens.size(); first += window) {
    const size_t count = std::min(window, tokens.size() - first);
    caches.push_back(&memory.emplace_back(decoder.cache_shape(), static_cast<int64_t>(count)));
    for (size_t i = 0; i < count; ++i) {
      rows.push_back({.sequence = static_cast<int32_t>(caches.size()) - 1,
                      .position = static_cast<int32_t>(i),
                      .token = tokens[first + i]});
    }
  }
  DecoderWorkspace workspace;
  try {
    const Matrix<const float> states = decoder.forward(rows, kind, caches, 0, workspace, team);
    rounding.round(decoder.weights().head, states);
  } catch (const Cancelled&) {
    return std::nullopt;
  }
  return rounding.take();
}

}  // namespace verbatim
