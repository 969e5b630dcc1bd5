#pragma once

#include <array>
#include <cstdint>

#include "formats/packed_matrix.h"

namespace verbatim {

// Escaped weights are weights that the code of a lossless format cannot express. Their bits are stored whole,
// beside the codes, and replace the weights of the tile after it is unpacked (kernel_table.h:
// EscapedWeights). They take four planes, from plane `first` on:
//   counts     uint8  [panel][tile][2]  escaped weights in each half of a tile, kFullHalf or kZeroHalf
//   starts     uint64 [panels + 1]      the index of each panel's first entry
//   positions  uint8  [entries]         the place within the half tile, in the order of the unpacked tile
//   values     uint16 [entries]         the weight's bits
// An escaped weight takes 24 bits, and the counts 1/32 bit for each weight of the matrix.

/// Packs one half of a tile: 256 weights, some of them escaped.
class HalfTile {
 public:
  /// Adds a weight: its place in the order of the unpacked tile, its bits, and whether it is escaped. Each of
  /// the 256 weights must be added once.
  void add(uint8_t position, uint16_t bits, bool escaped);
  /// Appends the entries of this half to those of its panel, whose halves must come in order. Returns the
  /// half's byte of the plane of counts.
  uint8_t finish(PanelTail& tail) const;

 private:
  std::array<uint16_t, 256> bits_{};
  std::array<bool, 256> escaped_{};
  int count_ = 0;
  bool zero_ = true;
};

/// Allocates the plane of counts. A format's allocate() calls it.
void add_count_plane(PackedMatrix& matrix);

/// Adds the planes of starts, positions and values, made of the panels' entries. A format's finish() calls
/// it.
void gather_escaped_weights(PackedMatrix& matrix, int first, std::span<const PanelTail> tails);

/// Checks the four planes. Throws Error(kBadInput) unless they agree with each other.
void validate_escaped_weights(const PackedMatrix& matrix, int first);

/// The escaped weights of a matrix, as kernels read them.
EscapedWeights escaped_weights_of(const PackedMatrix& matrix, int first);

/// The number of bytes of escaped weights that unpacking the whole matrix reads.
int64_t escaped_weight_bytes(const PackedMatrix& matrix, int first);

/// Puts the escaped weights of a panel in place: overwrites them in `bits`, the panel's weights as
/// [tile][half][256]. It is the reference that the kernels are tested against.
void apply_escaped_weights(const PackedMatrix& matrix, int first, int64_t panel, std::span<uint16_t> bits);

}  // namespace verbatim
