#pragma once

#include <cstdint>
#include <span>

#include "attention/coded_chunks.h"
#include "base/aligned_buffer.h"
#include "kernels/kernel_table.h"

namespace verbatim {

/// The step to a multiple of which queries are padded with zeros.
inline constexpr int64_t kQueryStep = 64;

/// The chunks of one head that are stored as codes. The record of chunk c lies at records + c · stride ·
/// record_bytes(), its lower halves at lower + c · stride · lower_bytes().
struct CodedChunks {
  const uint8_t* records = nullptr;  ///< null: no chunk is stored as codes
  const uint8_t* lower = nullptr;    ///< null: there are no lower halves, or they are not read
  int64_t stride = 1;                ///< the number of records from one chunk of the head to its next
  CodedLayout layout;
  /// The step, in positions, in which older positions become codes: a multiple of kAttentionChunk. A row
  /// reads all positions as codes except the last `flush` to 2 · flush - 1, its own included (QuantSpec
  /// §4.3.2); how many depends on its own position alone. 0: a row reads all positions as codes.
  int64_t flush = 0;

  CodedMatrix keys(int64_t chunk) const { return layout.keys(record(chunk), lower_record(chunk)); }
  CodedMatrix values(int64_t chunk) const { return layout.values(record(chunk), lower_record(chunk)); }

  /// The first chunk that a row at `position` does not read as codes.
  int64_t end_chunk(int64_t position) const {
    if (records == nullptr) return 0;
    if (flush == 0) return position / kAttentionChunk + 1;
    const int64_t flushes = (position + 1) / flush - 1;
    return flushes > 0 ? flushes * (flush / kAttentionChunk) : 0;
  }

  const uint8_t* record(int64_t chunk) const { return records + chunk * stride * layout.record_bytes(); }
  const uint8_t* lower_record(int64_t chunk) const {
    return lower == nullptr ? nullptr : lower + chunk * stride * layout.lower_bytes();
  }
};

/// The page of a chunk: memory for its first `positions` positions, a multiple of kInnerStep up to
/// kAttentionChunk, with the heads of all layers one after the other.
struct ChunkPage {
  BFloat16* data = nullptr;
  int64_t positions = 0;
};

/// The panels of one chunk of one head.
struct PanelChunk {
  const BFloat16* keys = nullptr;
  const BFloat16* values = nullptr;
  const Float16* f16_keys = nullptr;  ///< instead of `keys` and `values`
  const Float16* f16_values = nullptr;
  const float* f32_keys = nullptr;  ///< instead of `keys` and `values`
  const float* f32_values = nullptr;
  int64_t positions =
      kAttentionChunk;  ///< the positions that there is room for: the length of panels of values
};

/// One head's keys and values as panels (formats/panels.h), chunk by chunk:
///   keys    [chunk][128 / 16 panels][width / 2][16 positions][2]   times queries: scores
///   values  [chunk][width / 16 panels][128 / 2][16 dimensions][2]  times probabilities: outputs
/// in BF16. In F16 and F32 there are no pairs: a panel is [width][16 positions] or [128][16 dimensions].
/// `width` is the head dimension padded with zeros to a multiple of 32. A page of fewer positions has its
/// number of positions in place of the 128.
struct HeadCache {
  const BFloat16* keys = nullptr;
  const BFloat16* values = nullptr;
  const Float16* f16_keys = nullptr;  ///< instead of `keys` and `values`
  const Float16* f16_values = nullptr;
  const float* f32_keys = nullptr;  ///< instead of `keys` and `values`
  const float* f32_values = nullptr;
  int64_t chunk_stride = 0;  ///< elements from one chunk to the next, for keys and for values
  int64_t width = 0;
  int64_t ring = 0;  ///< the length of a ring of chunks, in which chunk c has place c mod ring; 0: no ring
  /// The pages of a paged cache, by chunk, instead of `keys` and `values`; this head is number `page_head` in
  /// each.
  const ChunkPage* pages = nullptr;
  int64_t page_head = 0;
  CodedChunks coded;

  /// The panels of a chunk that is not stored as codes.
  PanelChunk chunk(int64_t index) const {
    PanelChunk found;
    if (pages != nullptr) {
      const ChunkPage& page = pages[index];
      found.positions = page.positions;
      found.keys = page.data + 2 * page_head * page.positions * width;
      found.values = found.keys + page.positions * width;
      return found;
    }
    const int64_t place = (ring > 0 ? index % ring : index) * chunk_stride;
    if (f16_keys != nullptr) {
      found.f16_keys = f16_keys + place;
      found.f16_values = f16_values + place;
    } else if (f32_keys != nullptr) {
      found.f32_keys = f32_keys + place;
      found.f32_values = f32_values + place;
    } else if (keys != nullptr) {
      found.keys = keys + place;
      found.values = values + place;
    }
    return found;
  }
};

/// The positions that the rows of a draft see where they do not see all (StreamingLLM and SnapKV, the
/// baselines that QuantSpec compares with): those from `first` on, the first `sinks`, and selected copies.
struct SparseView {
  /// The position from which on rows see all positions of the cache; earlier ones are seen only as the
  /// members below say.
  int64_t first = 0;
  /// The number of positions at the beginning of the context that are also seen (StreamingLLM): at most one
  /// chunk, and only if `first` lies beyond that chunk.
  int64_t sinks = 0;
  /// The number of positions in `selected`.
  int64_t selected_count = 0;
  /// Copies of positions below `first` that are also seen (SnapKV).
  HeadCache selected;
};

/// The input and output of attention for rows of one sequence and one key-value head.
struct AttentionBlock {
  const BFloat16* queries;  ///< [rows][group][width]: `group` query heads share the key-value head
  /// The queries of a cache in F32, of the same shape, for which `queries` is not read; else null.
  const float* f32_queries = nullptr;
  const int32_t* positions;  ///< [rows]; a row sees the positions up to its own
  int64_t rows;
  int64_t group;
  int64_t head_dim;
  int64_t width;     ///< the head dimension padded with zeros to a multiple of kQueryStep
  int64_t window;    ///< a row sees itself and the window - 1 positions before it; 0: all of them
  float scale;       ///< the factor on the scores
  float cap = 0.0f;  ///< the soft cap of the scaled scores, cap · tanh(score / cap); 0: none
  /// The sinks of the group's query heads: scores without a position, whose share of the softmax has no
  /// value; null: there are none.
  const float* sinks = nullptr;
  HeadCache cache;
  SparseView view = {};
  float* out;  ///< [rows][out_stride]: the outputs of the group's heads side by side, head_dim each
  int64_t out_stride;
};

/// The buffers of one thread's attention.
struct AttentionScratch {
  Buffer<float> scores;            // [query rows][kAttentionChunk]
  Buffer<BFloat16> probabilities;  // [query rows][kAttentionChunk]
  Buffer<float> sums;              // [query rows][width]
  Buffer<SoftmaxState> states;     // [query rows]
  Buffer<float> floats;            // [query rows][width or kAttentionChunk]: operands of F16 panels
  CodeScratch codes;

  void reserve(int64_t query_rows, int64_t width);
};

/// The number of rows that a block should have for a group of query heads, so that its scratch stays in the
/// processor's cache.
int64_t attention_rows_per_block(int64_t group);

/// Computes softmax attention of a block: goes once over the chunks that its rows see, with a running
/// maximum.
void attend(const AttentionBlock& block, AttentionScratch& scratch);

/// Adds to shares[p] the attention probabilities that the block's queries give to position p, rounded as
/// attend() rounds them. The probabilities of one query add up to 1 over all positions that it sees,
/// including those beyond the span; or to less, by the share of its sink. The cache must not hold codes. It
/// does not allocate or throw if the scratch has room for the block's query rows.
void add_attention_shares(const AttentionBlock& block, AttentionScratch& scratch, std::span<float> shares);

// Attention in parts, for rows that do not all see the same keys: call begin_attention(), then
// attend_to_chunks() so that every row takes in all chunks that it sees, in order, then end_attention(). The
// result is that of attend().

/// Begins attention of a block with an empty state. The scratch must have room for the block's query rows.
void begin_attention(const AttentionBlock& block, AttentionScratch& scratch);
/// Makes the rows first_row .. first_row + rows - 1 attend to the positions that they see in the chunks
/// first_chunk .. end_chunk - 1.
void attend_to_chunks(const AttentionBlock& block, int64_t first_row, int64_t rows, int64_t first_chunk,
                      int64_t end_chunk, AttentionScratch& scratch);
/// Writes the outputs of all rows to block.out.
void end_attention(const AttentionBlock& block, AttentionScratch& scratch);

}  // namespace verbatim
