#pragma once

#include <array>
#include <cstdint>

#include "formats/packed_matrix.h"

namespace verbatim {

// Weights that a lossless format cannot code where they stand, and keeps as they are (kernel_table.h:
// EscapedWeights). Four planes from `first` on:
//   counts     uint8  [panel][tile][2]  escaped weights in each half of a tile, kFullHalf or kZeroHalf
//   starts     uint64 [panels + 1]      where each panel's entries begin
//   positions  uint8  [entries]         the place within the half tile, in the order of the unpacked tile
//   values     uint16 [entries]         the weight's bits
// 24 bits an escaped weight, 1/32 bit a weight besides.

/// Half a tile that is being packed.
class HalfTile {
 public:
  /// Notes a weight, with its place in the order of the unpacked tile. Each of the 256 must be noted once.
  void add(uint8_t position, uint16_t bits, bool escaped);
  /// Adds the half's entries to those of the panel, whose halves come in order. Returns what belongs into
  /// the plane of counts.
  uint8_t finish(PanelTail& tail) const;

 private:
  std::array<uint16_t, 256> bits_{};
  std::array<bool, 256> escaped_{};
  int count_ = 0;
  bool zero_ = true;
};

/// Allocates the plane of counts; to be called by allocate().
void add_count_plane(PackedMatrix& matrix);

/// Adds the other three planes from what the panels noted.
void gather_escaped_weights(PackedMatrix& matrix, int first, std::span<const PanelTail> tails);

/// Throws Error(kBadInput) unless the four planes agree with each other.
void validate_escaped_weights(const PackedMatrix& matrix, int first);

EscapedWeights escaped_weights_of(const PackedMatrix& matrix, int first);

/// The bytes that unpacking reads of them.
int64_t escaped_weight_bytes(const PackedMatrix& matrix, int first);

/// The reference: overwrites a panel's weights, given as the bits of [tile][half][256].
void apply_escaped_weights(const PackedMatrix& matrix, int first, int64_t panel, std::span<uint16_t> bits);

}  // namespace verbatim
