#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/matrix.h"
#include "base/thread_team.h"
#include "checkpoint/model_config.h"
#include "kv/cache.h"
#include "kv/sparse.h"
#include "model/branches.h"
#include "model/hadamard.h"
#include "model/rope.h"
#include "model/row.h"
#include "model/weights.h"

namespace verbatim {

/// The pass kind: what a pass evaluates of a model, and who observes it.
struct PassKind {
  PassKind(Reading reading_) : reading(reading_) {}  // NOLINT(google-explicit-constructor): the usual case

  Reading reading;
  /// Whether the pass drafts. In a batch, drafting passes go before those that verify.
  bool drafts = false;
  /// The number of layers that are evaluated before the output matrix (an early exit); 0: all of them.
  int64_t layers = 0;
  /// The number of experts that a row goes through in a mixture of experts; 0: as many as the model uses.
  int32_t experts = 0;
  /// An output matrix for fewer tokens in place of the model's own; or null.
  const LinearWeight* head = nullptr;
  CachePart cache = CachePart::kWhole;
  /// Whether the pass ends before the output matrix: in place of logits it gives the hidden states of the
  /// last layer, normalized as the output matrix would read them.
  bool hidden_states = false;
  /// The view through which rows see the cache; null: they see all positions.
  const SparseCache* sparse = nullptr;
  /// Is shown the queries of the pass; or null. The pass must then have the rows of one sequence, without
  /// branches.
  AttentionObserver* observer = nullptr;
  /// Is called with the input of every matrix that is multiplied with, on the thread of the pass; or null.
  /// Calibration of quantization uses it.
  const std::function<void(const LinearWeight& weight, Matrix<const float> x)>* inputs = nullptr;
};

/// Neighbouring rows of one sequence that attend together: rows first .. first + count - 1.
struct RowBlock {
  int64_t first;
  int64_t count;
};

/// The ways in which a layer differs from other layers of its model.
struct LayerKind {
  int64_t window = 0;   ///< the number of positions that a position sees, itself included; 0: all
  bool rotates = true;  ///< whether queries and keys are rotated
  size_t rope = 0;      ///< which of the model's rotary embeddings rotates them
};
/// The kinds of all layers of a model.
std::vector<LayerKind> layer_kinds(const ModelConfig& config);

/// A row of a pass and the weight of one expert that it goes through.
struct ExpertRow {
  int32_t row;
  float weight;
};

/// The buffers of a layer's mixture of experts.
struct ExpertWorkspace {
  Buffer<float> scores;         // [rows][experts, padded]: what the router gives
  std::vector<int32_t> order;   // [rows][experts]: room for choosing
  std::vector<int32_t> chosen;  // [rows][used]: the experts of each row, ascending
  std::vector<float> weights;   // [rows][used]: their weights
  std::vector<ExpertRow> rows;  // [rows × used]: grouped by expert, ascending by expert and by row
  std::vector<size_t> groups;   // by expert: the first of its rows in `rows`; one more: their number
  Buffer<float> gathered;       // [rows][hidden]: the inputs of an expert
  Buffer<float> sums;           // [rows][hidden]: what the experts gave so far
};

/// The buffers of a pass. They are kept from one pass to the next, so that decoding does not allocate. Each
/// thread that runs passes has its own.
struct DecoderWorkspace {
  int64_t rows = 0;
  Buffer<float> hidden;       // [rows][hidden]: the residual stream
  Buffer<float> normed;       // [rows][hidden]: the input of the next matrix
  Buffer<float> projected;    // [rows][widest output of a matrix]
  Buffer<float> gathered;     // [rows][heads × head_dim or intermediate]: the input of `output` or `down`
  Buffer<float> arranged;     // [rows][widest input of a matrix]: inputs in the order of Atom
  Buffer<float> logits;       // [rows that want logits][vocabulary]
  Buffer<BFloat16> queries;   // [kv head][rows][group][width]
  Buffer<float> f32_queries;  // the same for rows whose cache reads queries in F32, if there are any
  Buffer<float> cosine;       // [rotary embedding][rows][half]
  Buffer<float> sine;         // [rotary embedding][rows][half]
  Buffer<int32_t> positions;  // [rows]
  LinearWorkspace linear;
  ExpertWorkspace experts;
  std::vector<AttentionScratch> attention;  // one per member of the team
  std::vector<RowBlock> blocks;             // the blocks of rows of the pass
  std::vector<Branches> branches;           // the first `branched`: the trees of the pass
  size_t branched = 0;                      // the number of sequences of the pass that have branches
  std::vector<int32_t> logits_rows;         // the rows of the pass that want logits

  /// The tree that a row belongs to; null if its sequence has no branches.
  Branches* branches_of(int64_t row) {
    for (size_t i = 0; i < branched; ++i) {
      if (branches[i].contains(row)) return &branches[i];
    }
    return nullptr;
  }
};

/// A decoder-only transformer (Llama, Mistral, Qwen2, Qwen3, SmolLM3, Granite, OLMo 2, Phi-3, Gemma 2 and 3,
/// GLM-4, Mixtral, Qwen3-MoE, gpt-oss, GPT-2, StarCoder 2, OPT) as a list of operations over rows.
class Decoder {
 public:
  Decoder(const ModelConfig& config, DecoderWeights weights);

  /// Evaluates rows in one pass over the weights. Writes every row's keys and values into its sequence's
  /// cache, at its position. Returns the logits of `logits_rows`, one row below the other and without padded
  /// columns, as a matrix in the workspace that is valid until the next pass.
  ///
  /// The rows of a sequence must lie together, each after its parent. Their past is what the cache holds
  /// below the first of them. A row's logits, keys and values depend on its token, its position, the rows
  /// that it follows and that past alone, bit for bit: not on other rows, the number of threads, or how the
  /// past was cut into passes.
  ///
  /// The rows of a sequence may be a tree. The cache then holds its trunk, the rows up to the first branch.
  Matrix<const float> forward(std::span<const Row> rows, const PassKind& kind,
                              std::span<KvCache* const> caches, std::span<const int32_t> logits_rows,
                              DecoderWorkspace& workspace, ThreadTeam& team) const;
  /// Evaluates rows as above, and returns the logits of all rows from first_logits_row on.
  Matrix<const float> forward(std::span<const Row> rows, const PassKind& kind,
                              std::span<KvCache* const> caches, int64_t first_logits_row,
                              DecoderWorkspace& workspace, ThreadTeam& team) const;

  /// Makes the cache of a sequence hold, after a pass over a tree, the path that ends in row `last` of that
  /// pass. Different threads may do this for different sequences of one pass.
  void keep_path(int64_t last, KvCache& cache, DecoderWorkspace& workspace) const;

  const ModelConfig& config() const { return config_; }
  const DecoderWeights& weights() const { return weights_; }
  /// The weights of a model that is being changed. A matrix may be replaced by one of the same shape between
  /// passes, and when a pass shows what it is to be multiplied with (PassKind::inputs).
  DecoderWeights& weights() { return weights_; }
  /// The rotary embedding of the layers; if layers with a window have one of their own, that of the other
  /// layers.
  const RotaryEmbedding& rope() const { return ropes_.front(); }
  CacheShape cache_shape() const { return {config_.layers, config_.kv_heads, config_.head_dim}; }

 private:
  struct ForwardPass;

  ModelConfig config_;
  DecoderWeights weights_;
  std::vector<RotaryEmbedding> ropes_;  // that of layers with a window second, if they have one of their own
  std::vector<LayerKind> kinds_;        // by layer
  std::vector<LinearWeight> routers_;   // by layer, in F32; without stores in layers without experts
  // The transforms of QuaRot: across the heads, and of the input of `down`.
  std::optional<Hadamard> head_transform_;
  std::optional<Hadamard> inner_transform_;
};

}  // namespace verbatim
