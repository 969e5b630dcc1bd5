#pragma once

#include <cstdint>

#include "base/aligned_buffer.h"
#include "kernels/kernel_table.h"

namespace verbatim {

/// The context is cut into chunks of this many positions, counted from position 0. A row takes its chunks in
/// order, so its result depends on its own position alone.
inline constexpr int64_t kAttentionChunk = 128;

/// One head's keys and values as bf16 panels (formats/panels.h), chunk by chunk:
///   keys    [chunk][128 / 16 panels][width / 2][16 positions][2]   a product with queries gives scores
///   values  [chunk][width / 16 panels][128 / 2][16 dimensions][2]  a product with probabilities gives
///   outputs
/// `width` is the head dimension padded with zeros to a multiple of 32.
struct HeadCache {
  const BFloat16* keys;
  const BFloat16* values;
  int64_t chunk_stride;  ///< elements from a chunk to the next, of keys as of values
};

/// The rows of one sequence that attend to one key-value head together.
struct AttentionBlock {
  const BFloat16* queries;   ///< [rows][group][width]: `group` query heads share the key-value head
  const int32_t* positions;  ///< [rows]; a row sees the positions up to its own
  int64_t rows;
  int64_t group;
  int64_t head_dim;
  int64_t width;
  int64_t window;  ///< a row sees itself and the window - 1 positions before it; 0: all of them
  float scale;     ///< of the scores
  HeadCache cache;
  float* out;  ///< [rows][out_stride], the group's heads side by side, head_dim each
  int64_t out_stride;
};

/// Space for one thread's attention.
struct AttentionScratch {
  Buffer<float> scores;            // [query rows][kAttentionChunk]
  Buffer<BFloat16> probabilities;  // likewise
  Buffer<float> sums;              // [query rows][width]
  Buffer<SoftmaxState> states;     // [query rows]

  void reserve(int64_t query_rows, int64_t width);
};

/// The rows that a block should have for a group of query heads, so that the scratch stays in the cache.
int64_t attention_rows_per_block(int64_t group);

/// Softmax attention of a block: one pass over the chunks it can see, with a running maximum.
void attend(const AttentionBlock& block, AttentionScratch& scratch);

// The same in parts, for rows that do not all see the same keys: begin_attention(), attend_to_chunks() for
// every row over all the chunks that it can see, in order, and end_attention().

/// Forgets what the scratch holds. It has room for the block's query rows.
void begin_attention(const AttentionBlock& block, AttentionScratch& scratch);
/// Takes in the visible positions of chunks first_chunk .. end_chunk - 1 for `rows` rows from first_row on.
void attend_to_chunks(const AttentionBlock& block, int64_t first_row, int64_t rows, int64_t first_chunk,
                      int64_t end_chunk, AttentionScratch& scratch);
/// Writes the results out.
void end_attention(const AttentionBlock& block, AttentionScratch& scratch);

}  // namespace verbatim
