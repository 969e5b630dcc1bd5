#pragma once

#include <cstdint>

#include "kernels/coded_chunks.h"

namespace verbatim {

/// Where the codes of one chunk of one head go: see CodedLayout.
struct ChunkRecord {
  CodedLayout layout;
  uint8_t* codes;
  uint8_t* lower;  ///< null where the layout has none
};

/// Encodes a whole chunk (QuantSpec §4.2): keys and values are [kAttentionChunk][head_dim] floats, head_dim ≤
/// layout.width, which are taken as BF16 has them, finite. Upper codes are asymmetric, rounded to nearest
/// from 0 to 15 over each group's range; lower ones, -8 to 7, are what is left in sixteenths of the step.
/// Eight-bit codes are 0 to 255 over the range.
void encode_chunk(const float* keys, const float* values, int64_t head_dim, const ChunkRecord& record);

/// Encodes one position of a chunk whose layout gives every position scales of its own.
void encode_position(int64_t slot, const float* key, const float* value, int64_t head_dim,
                     const ChunkRecord& record);

/// The inverse: what the codes of a chunk stand for, [kAttentionChunk][head_dim] each. `upper_only`: what the
/// upper halves alone stand for.
void decode_chunk(const ChunkRecord& record, int64_t head_dim, bool upper_only, float* keys, float* values);

}  // namespace verbatim
