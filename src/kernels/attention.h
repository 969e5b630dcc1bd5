#pragma once

#include <cstdint>
#include <span>

#include "base/aligned_buffer.h"
#include "kernels/coded_chunks.h"
#include "kernels/kernel_table.h"

namespace verbatim {

/// Queries are padded with zeros to a multiple of this.
inline constexpr int64_t kQueryStep = 64;

/// Chunks of one head that are stored as codes: chunk c has its record at records + c · stride ·
/// record_bytes() and its lower halves at lower + c · stride · lower_bytes().
struct CodedChunks {
  const uint8_t* records = nullptr;  ///< null: no chunk is stored so
  const uint8_t* lower = nullptr;    ///< null: they are not read, or there are none
  int64_t stride = 1;                ///< records from a chunk to the next: those of other heads lie between
  CodedLayout layout;
  /// Codes are made of the past in steps of so many positions, a multiple of the chunk: a row meets as codes
  /// all positions but the last `flush` to 2 · flush - 1, its own included (QuantSpec §4.3.2), a function of
  /// its position alone. 0: it meets everything as codes.
  int64_t flush = 0;

  CodedMatrix keys(int64_t chunk) const { return layout.keys(record(chunk), lower_record(chunk)); }
  CodedMatrix values(int64_t chunk) const { return layout.values(record(chunk), lower_record(chunk)); }

  /// The first chunk that a row at this position does not meet as codes.
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

/// Where a cache that is made of pages has a chunk: `positions` of it, a multiple of kInnerStep up to
/// kAttentionChunk, for every layer and head one after the other.
struct ChunkPage {
  BFloat16* data = nullptr;
  int64_t positions = 0;
};

/// A chunk of one head's panels where it lies.
struct PanelChunk {
  const BFloat16* keys = nullptr;
  const BFloat16* values = nullptr;
  const Float16* f16_keys = nullptr;  ///< instead of `keys` and `values`
  const Float16* f16_values = nullptr;
  int64_t positions = kAttentionChunk;  ///< that there is room for: what panels of values are long
};

/// One head's keys and values as panels (formats/panels.h), chunk by chunk:
///   keys    [chunk][128 / 16 panels][width / 2][16 positions][2]   a product with queries gives scores
///   values  [chunk][width / 16 panels][128 / 2][16 dimensions][2]  a product with probabilities gives
///   outputs
/// in BF16; or in F16, without the pairs: [width][16 positions] and [128][16 dimensions]. `width` is the head
/// dimension padded with zeros to a multiple of 32. In a page of fewer positions there are so many in place
/// of the 128.
struct HeadCache {
  const BFloat16* keys = nullptr;
  const BFloat16* values = nullptr;
  const Float16* f16_keys = nullptr;  ///< instead of `keys` and `values`
  const Float16* f16_values = nullptr;
  int64_t chunk_stride = 0;  ///< elements from a chunk to the next, of keys as of values
  int64_t width = 0;
  int64_t ring = 0;  ///< chunk c lies where chunk c mod ring would; 0: in its own place
  /// Instead of `keys` and `values`: pages by chunk, in each of which this head is number `page_head`.
  const ChunkPage* pages = nullptr;
  int64_t page_head = 0;
  CodedChunks coded;

  /// A chunk that is stored as panels.
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
    } else if (keys != nullptr) {
      found.keys = keys + place;
      found.values = values + place;
    }
    return found;
  }
};

/// What drafts see of the past where they do without some of it (the baselines that QuantSpec compares with).
struct SparseView {
  /// Positions below are not seen where they are,
  int64_t first = 0;
  /// but for the first so many, at most a chunk, if `first` lies beyond that chunk (StreamingLLM),
  int64_t sinks = 0;
  /// and so many of them, gathered here (SnapKV).
  int64_t selected_count = 0;
  HeadCache selected;
};

/// The rows of one sequence that attend to one key-value head together.
struct AttentionBlock {
  const BFloat16* queries;   ///< [rows][group][width]: `group` query heads share the key-value head
  const int32_t* positions;  ///< [rows]; a row sees the positions up to its own
  int64_t rows;
  int64_t group;
  int64_t head_dim;
  int64_t width;   ///< the head dimension padded with zeros to a multiple of kQueryStep
  int64_t window;  ///< a row sees itself and the window - 1 positions before it; 0: all of them
  float scale;     ///< of the scores
  HeadCache cache;
  SparseView view = {};
  float* out;  ///< [rows][out_stride], the group's heads side by side, head_dim each
  int64_t out_stride;
};

/// Space for one thread's attention.
struct AttentionScratch {
  Buffer<float> scores;            // [query rows][kAttentionChunk]
  Buffer<BFloat16> probabilities;  // likewise
  Buffer<float> sums;              // [query rows][width]
  Buffer<SoftmaxState> states;     // [query rows]
  Buffer<float> floats;            // [query rows][width or kAttentionChunk]: for F16
  CodeScratch codes;

  void reserve(int64_t query_rows, int64_t width);
};

/// The rows that a block should have for a group of query heads, so that the scratch stays in the cache.
int64_t attention_rows_per_block(int64_t group);

/// Softmax attention of a block: one pass over the chunks it can see, with a running maximum.
void attend(const AttentionBlock& block, AttentionScratch& scratch);

/// Adds to shares[p] what each of the block's queries gives of its attention to position p, rounded as
/// attend() rounds it; the shares of a query add up to 1 over all that it sees, positions beyond the span
/// included. The cache holds no codes. With room in the scratch for the block's query rows it does not
/// allocate or throw.
void add_attention_shares(const AttentionBlock& block, AttentionScratch& scratch, std::span<float> shares);

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
