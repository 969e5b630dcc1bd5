#pragma once

#include <cstdint>

#include "attention/codes.h"

namespace verbatim {

/// The number of positions in a chunk. The context is cut into chunks from position 0 on, and a row takes its
/// chunks in order, so that its result depends on its own position alone.
inline constexpr int64_t kAttentionChunk = 128;

/// The layout of a chunk of one head's keys and values as codes, a record of
///   key codes, value codes, key scales, key zero points, value scales, value zero points
/// and, for kCodesBoth, a second record of the lower halves of the codes, keys before values.
/// Keys are a matrix of `width` dimensions × kAttentionChunk positions, values one of kAttentionChunk
/// positions × `width` dimensions.
struct CodedLayout {
  CodeStorage storage = kCodesBoth;
  int64_t width = 0;        ///< the head dimension padded with zeros to a multiple of 64
  int64_t key_group = 0;    ///< the number of positions of a channel that share a scale (CodedMatrix::group);
                            ///< 0: each position has one scale for all channels
  int64_t value_group = 0;  ///< the number of channels of a position that share a scale; 0: each channel has
                            ///< one scale for all positions of the chunk

  int64_t code_bytes() const;    ///< the bytes of the keys' codes, and also of the values' codes
  int64_t key_scales() const;    ///< the number of scales of the keys, and also of their zero points
  int64_t value_scales() const;  ///< the number of scales of the values, and also of their zero points
  int64_t record_bytes() const;  ///< the size of a record, a multiple of 64
  int64_t lower_bytes() const { return storage == kCodesBoth ? 2 * code_bytes() : 0; }

  /// The keys of a record as a matrix.
  CodedMatrix keys(const uint8_t* record, const uint8_t* lower) const;
  /// The values of a record as a matrix.
  CodedMatrix values(const uint8_t* record, const uint8_t* lower) const;
};

}  // namespace verbatim
