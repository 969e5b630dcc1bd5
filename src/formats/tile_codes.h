#pragma once

#include <cstdint>

#include "formats/packed_matrix.h"

namespace verbatim {

// The plane of 4-bit codes that `int4`, `mxfp4`, `bsfp` and `mxbf16` share, and the planes beside it. A tile
// is 16 columns × 32 of k, 256 bytes in four blocks of 64; a block is 8 of k, and gives each column four
// bytes. Byte j of a column in block b holds the code of k = 8 b + kQuadOrder[j] in its low nibble and of k =
// 8 b + 4 + kQuadOrder[j] in its high nibble (ML-SpecQD Fig. 4, but for the order within four).

inline constexpr int64_t kCodeTileBytes = 256;
inline constexpr int64_t kScaleGroup = 128;  ///< weights that share a scale in `int4` and `bsfp`
inline constexpr int64_t kTilesPerScaleGroup = kScaleGroup / kInnerStep;

/// Scale groups of a column.
inline int64_t scale_groups(const PackedMatrix& matrix) {
  return (matrix.tiles() + kTilesPerScaleGroup - 1) / kTilesPerScaleGroup;
}
/// Where (panel, group, column) lies in a plane of one entry per scale group.
inline int64_t scale_index(const PackedMatrix& matrix, int64_t column, int64_t k) {
  return (column / kPanelWidth * scale_groups(matrix) + k / kScaleGroup) * kPanelWidth + column % kPanelWidth;
}
/// The same for one entry per tile.
inline int64_t tile_scale_index(const PackedMatrix& matrix, int64_t column, int64_t k) {
  return (column / kPanelWidth * matrix.tiles() + k / kInnerStep) * kPanelWidth + column % kPanelWidth;
}

/// The tile that holds a weight, counted over the matrix.
inline int64_t tile_index(const PackedMatrix& matrix, int64_t column, int64_t k) {
  return column / kPanelWidth * matrix.tiles() + k / kInnerStep;
}

/// The byte of a weight's code in the plane; its high nibble if k / 4 is odd.
inline int64_t code_byte(const PackedMatrix& matrix, int64_t column, int64_t k) {
  return tile_index(matrix, column, k) * kCodeTileBytes + k % kInnerStep / 8 * 64 + column % kPanelWidth * 4 +
         kQuadOrder[k % 4];  // the order is its own inverse
}
inline uint8_t get_code(const uint8_t* codes, const PackedMatrix& matrix, int64_t column, int64_t k) {
  const uint8_t byte = codes[code_byte(matrix, column, k)];
  return k / 4 % 2 == 1 ? byte >> 4 : byte & 15;
}
/// The plane starts as zeros, and every code is put once.
inline void put_code(uint8_t* codes, const PackedMatrix& matrix, int64_t column, int64_t k, uint8_t code) {
  codes[code_byte(matrix, column, k)] |= static_cast<uint8_t>(k / 4 % 2 == 1 ? code << 4 : code);
}

/// Where the byte of a weight lies in a tile's plane of 512 bytes, two pairs of k to 64 bytes: what unpacking
/// takes as the low and the high bytes of words.
inline int64_t rest_byte(int64_t column, int64_t k) {
  const int64_t pair = k % kInnerStep / 2;
  return pair / 2 * 64 + (column % kPanelWidth * 2 + k % 2) * 2 + pair % 2;
}

inline size_t code_plane_bytes(const PackedMatrix& matrix) {
  return static_cast<size_t>(matrix.panels() * matrix.tiles() * kCodeTileBytes);
}

}  // namespace verbatim
