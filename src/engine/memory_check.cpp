#include "engine/memory_check.h"

#include <algorithm>

#include "base/error.h"
#include "base/matrix.h"
#include "drafting/sparse_levels.h"
#include "kv/dense.h"
#include "model/weights.h"

namespace verbatim {

namespace {

double gibibytes(int64_t bytes) {
  return static_cast<double>(bytes) / static_cast<double>(1 << 30);
}

}  // namespace

void require_memory(const ContextMemory& need, std::optional<int64_t> available) {
  if (!available || need.wanted() <= *available) return;
  fail(ErrorKind::kMachine,
       "a context of {} tokens takes {:.2f} GiB of memory{}, but {:.2f} GiB are available: shorten the "
       "prompt, "
       "generate fewer tokens, use a smaller cache, or free memory",
       need.tokens, gibibytes(need.wanted()), need.held > 0 ? " more than now" : "", gibibytes(*available));
}

int64_t dense_cache_bytes(const ModelConfig& config, int64_t positions) {
  return DenseCache::bytes_of({config.layers, config.kv_heads, config.head_dim},
                              round_up(positions, kAttentionChunk));
}

int64_t draft_cache_bytes(const Recipe& recipe, const ModelConfig& model, const ModelConfig* draft,
                          int64_t prompt, int64_t length) {
  int64_t bytes = 0;
  for (const DraftLevel& level : recipe.levels) {
    bytes += dense_cache_bytes(model, copied_positions(level, prompt));
    if (level.kind != DraftLevel::Kind::kModel || draft == nullptr) continue;
    bytes += dense_cache_bytes(*draft, std::min<int64_t>(length, draft->context));
  }
  return bytes;
}

int64_t pass_workspace_bytes(const ModelConfig& config, int64_t rows) {
  const int64_t queries = int64_t{config.heads} * config.head_dim;
  const int64_t with_keys = queries + 2 * int64_t{config.kv_heads} * config.head_dim;
  const Experts& experts = config.experts;
  const int64_t inner = std::max(config.intermediate_size, experts.intermediate_size);
  const int64_t widest = std::max({with_keys, int64_t{config.hidden_size}, 2 * inner});
  const int64_t gathered = packed_inputs(config, std::max(queries, inner));
  const int64_t arranged = config.quantization == QuantizationScheme::kAtom ? gathered : 0;
  const int64_t hidden = packed_inputs(config, config.hidden_size);
  const int64_t angles = int64_t{config.head_dim} * (config.window_rope_theta != 0.0f ? 2 : 1);
  // The inputs and the results of experts, the scores of all, and what is kept of those that a row chose.
  const int64_t mixture = experts.count == 0 ? 0 : 2 * hidden + 2 * experts.count + 4 * experts.used;
  const int64_t floats = 2 * hidden + widest + gathered + arranged + angles + mixture;
  // A cache in F32 has queries in F32 beside those in BF16.
  return rows *
         ((floats + queries) * int64_t{sizeof(float)} + (queries + 2 * gathered) * int64_t{sizeof(BFloat16)});
}

}  // namespace verbatim
