#pragma once

#include <cstdint>

#include "formats/packed_matrix.h"

namespace verbatim {

// The layout of the plane of 4-bit codes that `int4`, `mxfp4`, `bsfp` and `mxbf16` share, and of the planes
// beside it. A tile, 16 columns × 32 inputs, takes 256 bytes in four blocks of 64. A block has 8 inputs and
// gives each column four bytes. Byte j of a column in block b holds the code of k = 8 b + kQuadOrder[j] in
// its low nibble and of k = 8 b + 4 + kQuadOrder[j] in its high nibble (ML-SpecQD Fig. 4, except for the
// order within four).

inline constexpr int64_t kCodeTileBytes = 256;
inline constexpr int64_t kScaleGroup =
    128;  ///< the number of weights that share a scale in `int4` and `bsfp`
inline constexpr int64_t kTilesPerScaleGroup = kScaleGroup / kInnerStep;

/// The number of scale groups in a column.
inline int64_t scale_groups(const PackedMatrix& matrix) {
  return (matrix.tiles() + kTilesPerScaleGroup - 1) / kTilesPerScaleGroup;
}
/// The index of the scale of weight (column, k) in a plane [panel][group][16], which has an entry per scale
/// group.
inline int64_t scale_index(const PackedMatrix& matrix, int64_t column, int64_t k) {
  return (column / kPanelWidth * scale_groups(matrix) + k / kScaleGroup) * kPanelWidth + column % kPanelWidth;
}
/// The index of the scale of weight (column, k) in a plane [panel][tile][16], which has an entry per tile.
inline int64_t tile_scale_index(const PackedMatrix& matrix, int64_t column, int64_t k) {
  return (column / kPanelWidth * matrix.tiles() + k / kInnerStep) * kPanelWidth + column % kPanelWidth;
}

/// The index of the tile of weight (column, k), counted over the whole matrix.
inline int64_t tile_index(const PackedMatrix& matrix, int64_t column, int64_t k) {
  return column / kPanelWidth * matrix.tiles() + k / kInnerStep;
}

/// The index of the byte with the code of weight (column, k), which is its high nibble if k / 4 is odd, else
/// its low one.
inline int64_t code_byte(const PackedMatrix& matrix, int64_t column, int64_t k) {
  return tile_index(matrix, column, k) * kCodeTileBytes + k % kInnerStep / 8 * 64 + column % kPanelWidth * 4 +
         kQuadOrder[k % 4];  // the order is its own inverse
}
/// The code of weight (column, k).
inline uint8_t get_code(const uint8_t* codes, const PackedMatrix& matrix, int64_t column, int64_t k) {
  const uint8_t byte = codes[code_byte(matrix, column, k)];
  return k / 4 % 2 == 1 ? byte >> 4 : byte & 15;
}
/// Stores the code of weight (column, k). The plane must be zero at first, and every code stored once.
inline void put_code(uint8_t* codes, const PackedMatrix& matrix, int64_t column, int64_t k, uint8_t code) {
  codes[code_byte(matrix, column, k)] |= static_cast<uint8_t>(k / 4 % 2 == 1 ? code << 4 : code);
}

/// The index of weight (column, k) in its tile of a plane with a byte per weight, 512 bytes to a tile. Each
/// 64 bytes hold two pairs of k, which unpacking uses as the low and the high bytes of 16-bit words.
inline int64_t rest_byte(int64_t column, int64_t k) {
  const int64_t pair = k % kInnerStep / 2;
  return pair / 2 * 64 + (column % kPanelWidth * 2 + k % 2) * 2 + pair % 2;
}

/// The bytes of the plane of codes.
inline size_t code_plane_bytes(const PackedMatrix& matrix) {
  return static_cast<size_t>(matrix.panels() * matrix.tiles() * kCodeTileBytes);
}

}  // namespace verbatim
