#pragma once

#include <cstdint>

#include "kernels/codes.h"

namespace verbatim {

/// The context is cut into chunks of this many positions, counted from position 0. A row takes its chunks in
/// order, so its result depends on its own position alone.
inline constexpr int64_t kAttentionChunk = 128;

/// How the codes of a chunk of keys and values are made and where they lie: a record of
///   key codes, value codes, key scales, key zero points, value scales, value zero points
/// and, for kCodesBoth, a second record of the lower halves of the codes, keys before values.
/// Keys are a matrix of `width` dimensions × kAttentionChunk positions, values one of kAttentionChunk
/// positions × `width` dimensions.
struct CodedLayout {
  CodeStorage storage = kCodesBoth;
  int64_t width = 0;        ///< the head dimension padded with zeros to a multiple of 64
  int64_t key_group = 0;    ///< as CodedMatrix::group: so many positions share a scale per channel; 0: each
                            ///< position has one for all channels
  int64_t value_group = 0;  ///< so many channels share a scale per position; 0: each channel has one for all
                            ///< positions of the chunk

  int64_t code_bytes() const;    ///< of the keys, and as many of the values
  int64_t key_scales() const;    ///< how many; as many zero points
  int64_t value_scales() const;  ///< likewise
  int64_t record_bytes() const;  ///< a multiple of 64
  int64_t lower_bytes() const { return storage == kCodesBoth ? 2 * code_bytes() : 0; }

  /// The matrices of a record.
  CodedMatrix keys(const uint8_t* record, const uint8_t* lower) const;
  CodedMatrix values(const uint8_t* record, const uint8_t* lower) const;
};

}  // namespace verbatim
