#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "attention/attention.h"
#include "kernels/dispatch.h"
#include "model/decoder.h"

namespace verbatim {

/// One pass: the operations of the transformer in order, each over all rows.
struct Decoder::ForwardPass {
  /// The number of rows below which the calling thread does row operations alone, which is faster than
  /// sharing the work.
  static constexpr int64_t kRowsToShare = 4;

  const Decoder& decoder;
  const ModelConfig& config;
  std::span<const Row> rows;
  const PassKind& kind;
  std::span<KvCache* const> caches;
  DecoderWorkspace& work;
  ThreadTeam& team;
  const KernelTable& kernel = kernels();

  int64_t count = static_cast<int64_t>(rows.size());
  size_t used_experts = static_cast<size_t>(kind.experts > 0 ? std::min(kind.experts, config.experts.used)
                                                             : config.experts.used);
  int64_t hidden_width = round_up<int64_t>(config.hidden_size, kInnerStep);
  int64_t group = config.heads / config.kv_heads;
  int64_t head_width = round_up<int64_t>(config.head_dim, kQueryStep);
  int64_t query_columns = int64_t{config.heads} * config.head_dim;
  int64_t kv_columns = int64_t{config.kv_heads} * config.head_dim;
  Matrix<float> hidden{work.hidden.data(), count, hidden_width};
  Matrix<float> normed{work.normed.data(), count, hidden_width};
  float score_scale = config.scales.attention != 0.0f ? config.scales.attention
                                                      : 1.0f / std::sqrt(static_cast<float>(config.head_dim));

  template <typename Work>
  void each_of(int64_t number, Work&& work_on) {
    const auto range = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) work_on(i);
    };
    if (number < kRowsToShare) {
      range(0, number);
    } else {
      team.split(number, range);
    }
  }
  template <typename Work>
  void each_row(Work&& do_row) {
    each_of(count, do_row);
  }

  /// The matrices of a feed-forward part, the orders of their inputs and their biases.
  struct FeedForward {
    const LinearWeight& gate_up;
    const Buffer<float>& gate_up_order;
    const Buffer<float>& gate_up_bias;
    const LinearWeight& down;
    const Buffer<float>& down_order;
    const Buffer<float>& down_bias;
  };

  // The operations of the residual stream and the matrices (decoder.cpp).

  Matrix<const float> arranged(const Buffer<float>& order, Matrix<const float> x);
  Matrix<float> multiply(const LinearWeight& weight, const Buffer<float>& order, Matrix<const float> x);
  void transform(const std::optional<Hadamard>& transform, Matrix<float> x, int64_t width);
  void embed();
  /// Norms row r of the residual stream. The bias is that of a LayerNorm, else empty.
  void norm_row(int64_t r, const Buffer<float>& norm, const Buffer<float>& bias, float* out) const;
  Matrix<const float> read_stream(const Buffer<float>& norm, const Buffer<float>& bias);
  void add_to_stream(Matrix<float> y, const Buffer<float>& norm);
  void layer(int64_t index);
  /// Computes out = activation(gate) · up for `inner` numbers of each, or activation(up) without a gate.
  void activate(float* gate_up, int64_t inner, float* out) const;
  /// Returns the result of gate, up and down matrices for rows of inputs, in `work.projected`. Biases are
  /// empty where there are none.
  Matrix<float> feed_forward(const FeedForward& part, Matrix<const float> x);
  /// Adds a bias to every row, unless it is empty.
  void add_bias(Matrix<float> y, const Buffer<float>& bias);
  Matrix<const float> logits(std::span<const int32_t> wanted);

  /// The place of the angles of a row in the workspace's cosines and sines.
  int64_t angles_at(size_t rope, int64_t r) const {
    return (static_cast<int64_t>(rope) * count + r) * decoder.rope().half();
  }

  // The operations of a mixture of experts (experts.cpp).

  /// Returns the sum of what the experts of each row give, in `work.experts`.
  Matrix<float> experts(int64_t layer_index, Matrix<const float> x);
  /// Chooses the experts of each row and groups the rows by expert.
  void route(int64_t layer_index, Matrix<const float> x);

  // The operations on heads (heads.cpp).

  /// Norms the queries or the keys of a row, `columns` numbers of one part of qkv, as the model wants it.
  void norm_heads(const Buffer<float>& weight, int64_t r, int64_t columns, float* heads);
  /// Adds biases, norms and rotates queries and keys, lays the queries out by key-value head and stores keys
  /// and values.
  void place_heads(const LayerWeights& layer, int64_t layer_index, Matrix<float> qkv);
  /// Places one key-value head of a row, and the queries that share it.
  void place_head(int64_t layer_index, int64_t r, int64_t head, float* qkv);
  /// Rotates a head by the angles of a row's position, unless the layer does not rotate.
  void rotate(int64_t layer_index, int64_t r, float* head) const;
  /// Lets the caches encode the older positions that rows of this pass read as codes.
  void settle_caches(int64_t layer_index);
  SparseView view(int64_t layer_index, int64_t head, int64_t row) const;
  KvCache& cache_of(const RowBlock& block) const;
  /// Makes the attention block of some rows and a key-value head, without `out`.
  AttentionBlock attention_block(int64_t layer_index, int64_t head, const RowBlock& block) const;
  /// Shows the queries of every key-value head to the observer.
  void show(int64_t layer_index);
  /// Calls attend() on every block of rows of a sequence and every key-value head. Threads take whole blocks.
  void attention(int64_t layer_index, Matrix<float> out);
  /// Computes attention for a tree: first all rows over the chunks before the tree, then chain by chain over
  /// the rest.
  void attend_as_tree(const AttentionBlock& block, int64_t layer_index, int64_t head, Branches& branches,
                      KvCache& cache, AttentionScratch& scratch);
};

}  // namespace verbatim
