#pragma once

#include <cstdint>

#include "attention/coded_chunks.h"

namespace verbatim {

/// The memory for the codes of one chunk of one head, laid out as CodedLayout says.
struct ChunkRecord {
  CodedLayout layout;
  uint8_t* codes;
  uint8_t* lower;  ///< the lower halves; null if the layout has none
};

/// Encodes a whole chunk (QuantSpec §4.2): keys and values are [kAttentionChunk][head_dim] floats, head_dim ≤
/// layout.width, finite and already rounded to BF16. Upper codes, 0 to 15, are the numbers rounded to nearest
/// over the range of their group. Lower codes, -8 to 7, are the remainders in sixteenths of the upper codes'
/// step. Codes of eight bits in one piece are 0 to 255 over the range.
void encode_chunk(const float* keys, const float* values, int64_t head_dim, const ChunkRecord& record);

/// Encodes one position of a chunk whose layout gives every position scales of its own.
void encode_position(int64_t slot, const float* key, const float* value, int64_t head_dim,
                     const ChunkRecord& record);

/// Decodes a chunk, the inverse of encode_chunk(): writes the numbers that its codes stand for to `keys` and
/// `values`, [kAttentionChunk][head_dim] each. With `upper_only` it uses the upper halves alone.
void decode_chunk(const ChunkRecord& record, int64_t head_dim, bool upper_only, float* keys, float* values);

}  // namespace verbatim
