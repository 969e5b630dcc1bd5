#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/matrix.h"
#include "base/thread_team.h"
#include "checkpoint/model_config.h"
#include "kv/dense.h"
#include "model/rope.h"
#include "model/weights.h"

namespace verbatim {

/// One token at one position of one sequence to be evaluated. Prefill, decoding and verification are all
/// lists of rows.
struct Row {
  int32_t sequence;  ///< an index into the pass's caches
  int32_t position;
  int32_t token;
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
};

/// A decoder-only transformer (Llama, Mistral, Qwen2) as a list of operations over rows.
class Decoder {
 public:
  Decoder(const ModelConfig& config, DecoderWeights weights);

  /// Evaluates rows in one pass over the weights. Writes every row's keys and values into its sequence's
  /// cache, at its position, and returns the logits of rows first_logits_row, first_logits_row + 1, ... as a
  /// matrix in the workspace (padded columns are not part of it), valid until the next pass.
  ///
  /// Rows of a sequence lie together, in increasing order of position, and what the cache holds below the
  /// first of them is their past. A row's logits and cache entries depend on its token, its position and that
  /// past alone, bit for bit: not on the other rows, the number of threads or how the past was cut into
  /// passes.
  Matrix<const float> forward(std::span<const Row> rows, Reading reading, std::span<DenseCache* const> caches,
                              int64_t first_logits_row, DecoderWorkspace& workspace, ThreadTeam& team) const;

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
