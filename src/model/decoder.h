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

/// How a pass uses the weights.
struct PassKind {
  PassKind(Reading reading_) : reading(reading_) {}  // NOLINT(google-explicit-constructor): the usual case

  Reading reading;
  /// Whether the rows are drafts and what they follow: such passes go before those that verify.
  bool drafts = false;
  /// Evaluates so many layers and then the output matrix (an early exit); 0: all of them.
  int64_t layers = 0;
  /// Instead of the model's output matrix, for logits of fewer tokens; or null.
  const LinearWeight* head = nullptr;
  CachePart cache = CachePart::kWhole;
  /// The parts of the past that are seen, or null: all of it.
  const SparseCache* sparse = nullptr;
  /// Sees the queries, or null. Only for the rows of one sequence without branches.
  AttentionObserver* observer = nullptr;
  /// Sees what every matrix of the layers and the output matrix are multiplied with, or null: for
  /// calibration. Called on the thread of the pass.
  const std::function<void(const LinearWeight& weight, Matrix<const float> x)>* inputs = nullptr;
};

/// A run of rows of one sequence that attend together, for every key-value head.
struct RowBlock {
  int64_t first;
  int64_t count;
};

/// The buffers of a pass, kept from one to the next so that decoding does not allocate. One per thread of
/// control.
struct DecoderWorkspace {
  int64_t rows = 0;
  Buffer<float> hidden;     // [rows][hidden]: the residual stream
  Buffer<float> normed;     // [rows][hidden]: what the next matrix reads
  Buffer<float> projected;  // [rows][widest output of a matrix]
  Buffer<float> gathered;  // [rows][heads × head_dim or intermediate]: what the second matrix of a half reads
  Buffer<float> arranged;     // [rows][widest input of a matrix], where inputs have an order
  Buffer<float> logits;       // [rows that want logits][vocabulary]
  Buffer<BFloat16> queries;   // [kv head][rows][group][width]
  Buffer<float> cosine;       // [rows][half]
  Buffer<float> sine;         // [rows][half]
  Buffer<int32_t> positions;  // [rows]
  LinearWorkspace linear;
  std::vector<AttentionScratch> attention;  // one per member of the team
  std::vector<RowBlock> blocks;             // of rows that attend together
  std::vector<Branches> branches;           // of each sequence whose rows have some,
  size_t branched = 0;                      // which are the first so many
  std::vector<int32_t> logits_rows;         // of the pass

  /// Those that a row belongs to, or null.
  Branches* branches_of(int64_t row) {
    for (size_t i = 0; i < branched; ++i) {
      if (branches[i].contains(row)) return &branches[i];
    }
    return nullptr;
  }
};

/// A decoder-only transformer (Llama, Mistral, Qwen2) as a list of operations over rows.
class Decoder {
 public:
  Decoder(const ModelConfig& config, DecoderWeights weights);

  /// Evaluates rows in one pass over the weights. Writes every row's keys and values into its sequence's
  /// cache, at its position, and returns the logits of `logits_rows`, one below the other, as a matrix in the
  /// workspace (padded columns are not part of it), valid until the next pass.
  ///
  /// Rows of a sequence lie together, each after its parent, and what the cache holds below the first of them
  /// is their past. A row's logits and cache entries depend on its token, its position, the rows it follows
  /// and that past alone, bit for bit: not on the other rows, the number of threads or how the past was cut
  /// into passes.
  ///
  /// The rows of a sequence may be a tree. Its cache then holds the trunk, the rows up to the first branch.
  Matrix<const float> forward(std::span<const Row> rows, const PassKind& kind,
                              std::span<KvCache* const> caches, std::span<const int32_t> logits_rows,
                              DecoderWorkspace& workspace, ThreadTeam& team) const;
  /// The same with the logits of the rows from first_logits_row on.
  Matrix<const float> forward(std::span<const Row> rows, const PassKind& kind,
                              std::span<KvCache* const> caches, int64_t first_logits_row,
                              DecoderWorkspace& workspace, ThreadTeam& team) const;

  /// After a pass over a tree: makes the path that ends in row `last` the one that the cache holds. Sequences
  /// of one pass may be treated by different threads.
  void keep_path(int64_t last, KvCache& cache, DecoderWorkspace& workspace) const;

  const ModelConfig& config() const { return config_; }
  const DecoderWeights& weights() const { return weights_; }
  CacheShape cache_shape() const { return {config_.layers, config_.kv_heads, config_.head_dim}; }

 private:
  struct ForwardPass;

  ModelConfig config_;
  DecoderWeights weights_;
  RotaryEmbedding rope_;
  // QuaRot's: across the heads, and of what `down` reads.
  std::optional<Hadamard> head_transform_;
  std::optional<Hadamard> inner_transform_;
};

}  // namespace verbatim
