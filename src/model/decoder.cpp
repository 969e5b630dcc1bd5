#include "model/decoder.h"

#include <algorithm>

#include "base/error.h"
#include "formats/pack_linear.h"
#include "model/forward_pass.h"

namespace verbatim {

namespace {

/// Zeroes the columns from `used` on: matrices read whole inner steps.
void clear_padding(Matrix<float> x, int64_t used) {
  if (used == x.columns) return;
  for (int64_t r = 0; r < x.rows; ++r) std::fill(x.row(r) + used, x.row(r) + x.columns, 0.0f);
}

/// Brings gate and up into the form in which SiLU gives what Activation::kClampedSilu means: 1.702 · gate and
/// (1 + up) / 1.702, each of the clamped number. What is no number stays so.
void clamp_gate_up(float* gate_up, int64_t inner, float limit) {
  constexpr float kSlope = 1.702f;
  for (int64_t i = 0; i < inner; ++i) {
    const float gate = gate_up[i];
    const float up = gate_up[inner + i];
    const float above = up > limit ? limit : up;
    gate_up[i] = kSlope * (gate > limit ? limit : gate);
    gate_up[inner + i] = (1.0f + (above < -limit ? -limit : above)) / kSlope;
  }
}

void relu(const float* x, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] < 0.0f ? 0.0f : x[i];
}

}  // namespace

/// Puts the inputs of a matrix into its order: see packed_inputs().
Matrix<const float> Decoder::ForwardPass::arranged(const Buffer<float>& order, Matrix<const float> x) {
  if (order.size() == 0) return x;
  const Matrix<float> out(work.arranged.data(), x.rows, static_cast<int64_t>(order.size()));
  each_of(x.rows, [&](int64_t r) {
    const float* const from = x.row(r);
    float* const to = out.row(r);
    for (int64_t i = 0; i < out.columns; ++i) {
      const auto at = static_cast<int32_t>(order[static_cast<size_t>(i)]);
      to[i] = at < 0 ? 0.0f : from[at];
    }
  });
  return out;
}

Matrix<float> Decoder::ForwardPass::multiply(const LinearWeight& weight, const Buffer<float>& order,
                                             Matrix<const float> x) {
  if (kind.inputs != nullptr) (*kind.inputs)(weight, x);
  const Matrix<float> y(work.projected.data(), x.rows, weight.padded_columns());
  linear(weight, kind.reading, arranged(order, x), y, work.linear, team);
  return y;
}

void Decoder::ForwardPass::transform(const std::optional<Hadamard>& transform, Matrix<float> x,
                                     int64_t width) {
  if (transform) each_row([&](int64_t r) { transform->forward(x.row(r), width); });
}

void Decoder::ForwardPass::embed() {
  each_row([&](int64_t r) {
    const Row& row = rows[static_cast<size_t>(r)];
    decoder.weights_.embedding.read_row(row.token, {hidden.row(r), static_cast<size_t>(config.hidden_size)});
    for (size_t i = 0; i < decoder.ropes_.size(); ++i) {
      const int64_t at = angles_at(i, r);
      decoder.ropes_[i].angles(row.position, work.cosine.data() + at, work.sine.data() + at);
    }
    // The padding behind the row must be zero: numbers that an earlier pass left there would enter the
    // norm.
    std::fill(hidden.row(r) + config.hidden_size, hidden.row(r) + hidden_width, 0.0f);
    if (config.learned_positions) {
      // Sequences end before the last position that was learned. Passes that are timed go beyond it, and so
      // may those of a draft model whose context is shorter than the target's.
      const int64_t position = std::min(row.position, config.context - 1);
      const float* const learned = decoder.weights_.positions.data() + position * config.hidden_size;
      for (int64_t i = 0; i < config.hidden_size; ++i) hidden.row(r)[i] += learned[i];
    }
    if (config.scales.embedding != 1.0f) kernel.scale(hidden.row(r), hidden_width, config.scales.embedding);
    work.positions[static_cast<size_t>(r)] = row.position;
  });
}

void Decoder::ForwardPass::norm_row(int64_t r, const Buffer<float>& norm, const Buffer<float>& bias,
                                    float* out) const {
  const float epsilon = config.rms_norm_epsilon;
  if (config.layer_norm) {
    kernel.layer_norm(hidden.row(r), norm.data(), bias.data(), hidden_width, config.hidden_size, epsilon,
                      out);
  } else {
    kernel.rms_norm(hidden.row(r), norm.data(), hidden_width, config.hidden_size, epsilon, out);
  }
}

/// Returns the input of a part of a layer: the residual stream, normed if there is a norm.
Matrix<const float> Decoder::ForwardPass::read_stream(const Buffer<float>& norm, const Buffer<float>& bias) {
  if (norm.size() == 0) return hidden;
  each_row([&](int64_t r) { norm_row(r, norm, bias, normed.row(r)); });
  return normed;
}

/// Adds the result of a part of a layer to the residual stream, normed if there is a norm. The columns of y
/// behind the width of the stream are zero, as the padding of the weights is.
void Decoder::ForwardPass::add_to_stream(Matrix<float> y, const Buffer<float>& norm) {
  const int64_t width = round_up<int64_t>(config.hidden_size, 16);
  each_row([&](int64_t r) {
    if (norm.size() > 0) {
      kernel.rms_norm(y.row(r), norm.data(), width, config.hidden_size, config.rms_norm_epsilon, y.row(r));
    }
    if (config.scales.residual != 1.0f) kernel.scale(y.row(r), width, config.scales.residual);
    kernel.add(hidden.row(r), y.row(r), width);
  });
}

void Decoder::ForwardPass::layer(int64_t index) {
  const LayerWeights& weights = decoder.weights_.layers[static_cast<size_t>(index)];
  const Matrix<const float> attending = read_stream(weights.attention_norm, weights.attention_norm_bias);
  place_heads(weights, index, multiply(weights.qkv, weights.qkv_order, attending));
  const Matrix<float> heads(work.gathered.data(), count, round_up<int64_t>(query_columns, kInnerStep));
  clear_padding(heads, query_columns);
  settle_caches(index);
  if (kind.observer != nullptr) show(index);
  attention(index, heads);
  transform(decoder.head_transform_, heads, config.head_dim);
  const Matrix<float> attended = multiply(weights.output, weights.output_order, heads);
  add_bias(attended, weights.output_bias);
  add_to_stream(attended, weights.attention_end_norm);

  const Matrix<const float> x = read_stream(weights.mlp_norm, weights.mlp_norm_bias);
  const FeedForward part{weights.gate_up, weights.gate_up_order, weights.gate_up_bias,
                         weights.down,    weights.down_order,    weights.down_bias};
  add_to_stream(weights.experts.empty() ? feed_forward(part, x) : experts(index, x), weights.mlp_end_norm);
}

void Decoder::ForwardPass::add_bias(Matrix<float> y, const Buffer<float>& bias) {
  if (bias.size() == 0) return;
  each_of(y.rows, [&](int64_t r) { kernel.add(y.row(r), bias.data(), y.columns); });
}

Matrix<float> Decoder::ForwardPass::feed_forward(const FeedForward& part, Matrix<const float> x) {
  const int64_t inner = part.gate_up.columns / (config.plain_mlp ? 1 : 2);
  const Matrix<float> both = multiply(part.gate_up, part.gate_up_order, x);
  add_bias(both, part.gate_up_bias);
  const Matrix<float> activated(work.gathered.data(), x.rows, round_up<int64_t>(inner, kInnerStep));
  each_of(x.rows, [&](int64_t r) { activate(both.row(r), inner, activated.row(r)); });
  clear_padding(activated, inner);
  transform(decoder.inner_transform_, activated, 1);
  const Matrix<float> result = multiply(part.down, part.down_order, activated);
  add_bias(result, part.down_bias);
  return result;
}

/// Gate and up lie side by side, so the last step may read beyond one into the other; numbers that it writes
/// beyond the end are cleared with the padding.
void Decoder::ForwardPass::activate(float* gate_up, int64_t inner, float* out) const {
  if (config.plain_mlp) {
    const auto activation = config.activation == Activation::kGeluTanh ? kernel.gelu : relu;
    return activation(gate_up, round_up<int64_t>(inner, 16), out);
  }
  if (config.activation == Activation::kClampedSilu) clamp_gate_up(gate_up, inner, config.activation_limit);
  const auto gate = config.activation == Activation::kGeluTanh ? kernel.gelu_gate : kernel.silu_gate;
  gate(gate_up, gate_up + inner, round_up<int64_t>(inner, 16), out);
}

Matrix<const float> Decoder::ForwardPass::logits(std::span<const int32_t> wanted) {
  const LinearWeight& head = kind.head != nullptr ? *kind.head : decoder.weights_.head;
  const auto size = std::ssize(wanted);
  each_of(size, [&](int64_t i) {
    norm_row(wanted[static_cast<size_t>(i)], decoder.weights_.final_norm, decoder.weights_.final_norm_bias,
             normed.row(i));
  });
  const Matrix<const float> read = Matrix<const float>(normed).slice(0, size);
  if (kind.hidden_states) return {read.data, read.rows, config.hidden_size, read.stride};
  if (kind.inputs != nullptr) (*kind.inputs)(head, read);
  const Matrix<const float> x = arranged(decoder.weights_.head_order, read);
  const Matrix<float> y(work.logits.data(), x.rows, head.padded_columns());
  linear(head, kind.reading, x, y, work.linear, team);
  if (config.scales.logits != 1.0f) {
    each_of(size, [&](int64_t i) { kernel.scale(y.row(i), y.columns, config.scales.logits); });
  }
  if (config.soft_caps.logits != 0.0f) {
    each_of(size, [&](int64_t i) { kernel.soft_cap(y.row(i), y.columns, 1.0f, config.soft_caps.logits); });
  }
  return {y.data, y.rows, std::min<int64_t>(config.vocab_size, head.columns), y.stride};
}

std::vector<LayerKind> layer_kinds(const ModelConfig& config) {
  std::vector<LayerKind> kinds(static_cast<size_t>(config.layers), {.window = config.sliding_window});
  for (const int32_t layer : config.windowless_layers) kinds[static_cast<size_t>(layer)].window = 0;
  if (config.window_rope_theta != 0.0f) {
    for (LayerKind& kind : kinds) kind.rope = kind.window > 0 ? 1 : 0;
  }
  for (const int32_t layer : config.unrotated_layers) kinds[static_cast<size_t>(layer)].rotates = false;
  return kinds;
}

namespace {

/// The routers of all layers as matrices in F32, whatever the formats of other matrices: two experts whose
/// scores are close must not change places by rounding.
std::vector<LinearWeight> routers_of(const ModelConfig& config, const DecoderWeights& weights) {
  std::vector<LinearWeight> routers(weights.layers.size());
  ThreadTeam team(1);
  for (size_t i = 0; i < routers.size(); ++i) {
    const LayerWeights& layer = weights.layers[i];
    if (layer.experts.empty()) continue;
    const auto rows = [&layer](int64_t expert, std::span<float> row) {
      std::copy_n(layer.router.data() + expert * std::ssize(row), row.size(), row.data());
    };
    routers[i] =
        pack_linear(config.experts.count, config.hidden_size, rows, {.formats = {Format::kF32}}, team).weight;
  }
  return routers;
}

}  // namespace

Decoder::Decoder(const ModelConfig& config, DecoderWeights weights)
    : config_(config),
      weights_(std::move(weights)),
      ropes_(RotaryEmbedding::all_of(config)),
      kinds_(layer_kinds(config)),
      routers_(routers_of(config_, weights_)) {
  if (config_.quantization != QuantizationScheme::kQuarot) return;
  head_transform_.emplace(config_.heads);
  inner_transform_.emplace(config_.intermediate_size);
}

namespace {

/// Makes room for the experts of a pass of `rows` rows.
void reserve_experts(ExpertWorkspace& work, const ModelConfig& config, int64_t rows) {
  const Experts& experts = config.experts;
  if (experts.count == 0) return;
  const auto chosen = static_cast<size_t>(rows * experts.used);
  work.scores = Buffer<float>(static_cast<size_t>(rows * round_up<int64_t>(experts.count, kPanelWidth)));
  work.order.resize(static_cast<size_t>(rows * experts.count));
  work.chosen.resize(chosen);
  work.weights.resize(chosen);
  work.rows.resize(chosen);
  work.groups.resize(static_cast<size_t>(experts.count) + 1);
  const int64_t width = round_up<int64_t>(config.hidden_size, kInnerStep);
  work.gathered = Buffer<float>(static_cast<size_t>(rows * width));
  work.sums = Buffer<float>(static_cast<size_t>(rows * width));
}

/// Makes room for a pass of `rows` rows, `logits_rows` of which want logits.
void reserve(DecoderWorkspace& work, const ModelConfig& config, const DecoderWeights& weights, int64_t rows,
             int64_t logits_rows, int members) {
  if (rows > work.rows) {
    const LayerWeights& layer = weights.layers.front();
    const int64_t head_width = round_up<int64_t>(config.head_dim, kQueryStep);
    int64_t widest = 0;
    int64_t gathered = 0;
    for (const LayerWeights& each : weights.layers) {
      each_matrix(each, [&](const LinearWeight& matrix) {
        widest = std::max(widest, matrix.padded_columns());
        if (&matrix != &each.qkv) gathered = std::max(gathered, matrix.padded_k());
      });
    }
    work.rows = 0;  // while some of it may be missing
    work.hidden = Buffer<float>(static_cast<size_t>(rows * layer.qkv.padded_k()));
    work.normed = Buffer<float>(static_cast<size_t>(rows * layer.qkv.padded_k()));
    // The activation may read a step past the end of the last row.
    work.projected = Buffer<float>(static_cast<size_t>(rows * widest + kInnerStep));
    work.gathered = Buffer<float>(static_cast<size_t>(rows * gathered));
    if (config.quantization == QuantizationScheme::kAtom) {
      const int64_t inputs = std::max(layer.qkv.padded_k(), gathered);
      work.arranged = Buffer<float>(static_cast<size_t>(rows * inputs));
    }
    work.queries = Buffer<BFloat16>(static_cast<size_t>(rows * config.heads * head_width));
    const int64_t ropes = config.window_rope_theta != 0.0f ? 2 : 1;
    work.cosine = Buffer<float>(static_cast<size_t>(ropes * rows * config.head_dim / 2));
    work.sine = Buffer<float>(static_cast<size_t>(ropes * rows * config.head_dim / 2));
    work.positions = Buffer<int32_t>(static_cast<size_t>(rows));
    work.linear.reserve(rows, std::max<int64_t>(config.hidden_size, gathered), members);
    reserve_experts(work.experts, config, rows);
    work.rows = rows;
  }
  work.logits.reserve(static_cast<size_t>(logits_rows * weights.head.padded_columns()));
  if (static_cast<int>(work.attention.size()) < members) work.attention.resize(static_cast<size_t>(members));
}

/// The end of the run of rows of one sequence that begins at `first`.
int64_t end_of_sequence(std::span<const Row> rows, int64_t first) {
  auto end = static_cast<size_t>(first) + 1;
  while (end < rows.size() && rows[end].sequence == rows[static_cast<size_t>(first)].sequence) ++end;
  return static_cast<int64_t>(end);
}

/// Finds the sequences whose rows have branches, and cuts the rows of the others into blocks.
void plan_rows(std::span<const Row> rows, const ModelConfig& config, int64_t layers, DecoderWorkspace& work) {
  const int64_t rows_per_block = attention_rows_per_block(config.heads / config.kv_heads);
  work.branched = 0;
  work.blocks.clear();
  for (int64_t first = 0, end = 0; first < std::ssize(rows); first = end) {
    end = end_of_sequence(rows, first);
    bool tree = false;
    for (int64_t i = first; i < end && !tree; ++i) tree = begins_branch(rows, static_cast<size_t>(i));
    if (!tree) {
      for (int64_t block = first; block < end; block += rows_per_block) {
        work.blocks.push_back({block, std::min(rows_per_block, end - block)});
      }
      continue;
    }
    if (work.branched == work.branches.size()) work.branches.emplace_back();
    work.branches[work.branched++].plan(rows, first, end, layers, int64_t{config.kv_heads} * config.head_dim);
    work.blocks.push_back({first, end - first});
  }
}

}  // namespace

Matrix<const float> Decoder::forward(std::span<const Row> rows, const PassKind& kind,
                                     std::span<KvCache* const> caches, int64_t first_logits_row,
                                     DecoderWorkspace& workspace, ThreadTeam& team) const {
  if (first_logits_row < 0) fail(ErrorKind::kUsage, "a pass needs at least one row");
  workspace.logits_rows.clear();
  for (int64_t row = first_logits_row; row < std::ssize(rows); ++row) {
    workspace.logits_rows.push_back(static_cast<int32_t>(row));
  }
  return forward(rows, kind, caches, workspace.logits_rows, workspace, team);
}

Matrix<const float> Decoder::forward(std::span<const Row> rows, const PassKind& kind,
                                     std::span<KvCache* const> caches, std::span<const int32_t> logits_rows,
                                     DecoderWorkspace& workspace, ThreadTeam& team) const {
  if (rows.empty()) fail(ErrorKind::kUsage, "a pass needs at least one row");
  for (const Row& row : rows) {
    if (row.token < 0 || row.token >= config_.vocab_size) {
      bad_input("token {} is outside the vocabulary of {} tokens", row.token, config_.vocab_size);
    }
    if (row.position < 0 || row.position >= caches[static_cast<size_t>(row.sequence)]->capacity()) {
      bad_input("position {} is outside the cache of {} positions", row.position,
                caches[static_cast<size_t>(row.sequence)]->capacity());
    }
  }
  const auto count = static_cast<int64_t>(rows.size());
  const int64_t layers = kind.layers > 0 ? std::min<int64_t>(kind.layers, config_.layers) : config_.layers;
  plan_rows(rows, config_, layers, workspace);
  if (kind.observer != nullptr && (rows.front().sequence != rows.back().sequence || workspace.branched > 0)) {
    fail(ErrorKind::kUsage, "a pass that is observed has the rows of one sequence, without branches");
  }
  // Hidden states take no room for logits, of which there would be many.
  const int64_t with_logits = kind.hidden_states ? 0 : std::ssize(logits_rows);
  reserve(workspace, config_, weights_, count, with_logits, team.size());
  if (std::any_of(caches.begin(), caches.end(),
                  [](const KvCache* cache) { return cache->reads_f32_queries(); })) {
    if (kind.observer != nullptr) fail(ErrorKind::kUsage, "queries in F32 are shown to no observer");
    workspace.f32_queries.reserve(workspace.queries.size());
  }
  ForwardPass pass{.decoder = *this,
                   .config = config_,
                   .rows = rows,
                   .kind = kind,
                   .caches = caches,
                   .work = workspace,
                   .team = team};
  pass.embed();
  for (int64_t i = 0; i < layers; ++i) pass.layer(i);
  if (logits_rows.empty()) return {};
  return pass.logits(logits_rows);
}

void Decoder::keep_path(int64_t last, KvCache& cache, DecoderWorkspace& workspace) const {
  if (Branches* const branches = workspace.branches_of(last)) {
    branches->keep(last, config_.kv_heads, config_.head_dim, cache);
  }
}

}  // namespace verbatim
