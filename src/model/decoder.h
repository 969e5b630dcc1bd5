#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/matrix.h"
#include "base/thread_team.h"
#include "checkpoint/model_config.h"
#include "kv/cache.h"
#include "kv/sparse.h"
#include "model/branches.h"
#include "model/rope.h"
#include "model/row.h"
#include "model/weights.h"

namespace verbatim {

/// How a pass uses the weights.
struct PassKind {
  PassKind(Reading reading_) : reading(reading_) {}  // NOLINT(google-explicit-constructor): the usual case

  Reading reading;
  /// Evaluates so many layers and then the output matrix (an early exit); 0: all of them.
  int64_t layers = 0;
  /// Instead of the model's output matrix, for logits of fewer tokens; or null.
  const LinearWeight* head = nullptr;
  CacheReading cache = CacheReading::kFull;
  /// The parts of the past that are seen, or null: all of it.
  const SparseCache* sparse = nullptr;
  /// Sees the queries, or null. Only for the rows of one sequence without branches.
  AttentionObserver* observer = nullptr;
};

/// The buffers of a pass, kept from one to the next so that decoding does not allocate. One per thread of
/// control.
struct DecoderWorkspace {
  int64_t rows = 0;
  Buffer<float> hidden;     // [rows][hidden]: the residual stream
  Buffer<float> normed;     // [rows][hidden]: what the next matrix reads
  Buffer<float> projected;  // [rows][widest output of a matrix]
  Buffer<float> gathered;  // [rows][heads × head_dim or intermediate]: what the second matrix of a half reads
  Buffer<float> logits;    // [rows that want logits][vocabulary]
  Buffer<BFloat16> queries;   // [kv head][rows][group][width]
  Buffer<float> cosine;       // [rows][half]
  Buffer<float> sine;         // [rows][half]
  Buffer<int32_t> positions;  // [rows]
  LinearWorkspace linear;
  std::vector<AttentionScratch> attention;  // one per member of the team
  Branches branches;                        // of the one sequence whose rows have some
};

/// A decoder-only transformer (Llama, Mistral, Qwen2) as a list of operations over rows.
class Decoder {
 public:
  Decoder(const ModelConfig& config, DecoderWeights weights);

  /// Evaluates rows in one pass over the weights. Writes every row's keys and values into its sequence's
  /// cache, at its position, and returns the logits of rows first_logits_row, first_logits_row + 1, ... as a
  /// matrix in the workspace (padded columns are not part of it), valid until the next pass.
  ///
  /// Rows of a sequence lie together, each after its parent, and what the cache holds below the first of them
  /// is their past. A row's logits and cache entries depend on its token, its position, the rows it follows
  /// and that past alone, bit for bit: not on the other rows, the number of threads or how the past was cut
  /// into passes.
  ///
  /// One sequence of a pass may be a tree. Its cache then holds the trunk, the rows up to the first branch.
  Matrix<const float> forward(std::span<const Row> rows, const PassKind& kind,
                              std::span<KvCache* const> caches, int64_t first_logits_row,
                              DecoderWorkspace& workspace, ThreadTeam& team) const;

  /// After a pass over a tree: makes the path that ends in row `last` the one that the cache holds.
  void keep_path(int64_t last, KvCache& cache, DecoderWorkspace& workspace) const;

  const ModelConfig& config() const { return config_; }
  const DecoderWeights& weights() const { return weights_; }
  CacheShape cache_shape() const { return {config_.layers, config_.kv_heads, config_.head_dim}; }

 private:
  struct Pass;

  ModelConfig config_;
  DecoderWeights weights_;
  RotaryEmbedding rope_;
};

}  // namespace verbatim
