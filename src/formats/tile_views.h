#pragma once

#include "formats/packed_matrix.h"

namespace verbatim {

// Stores as kernels see them.

/// The tiles of `bf16`, and of readings that unpack tiles: `mxfp4` `w4a16`, `bsfp`, `mxbf16` `full`, `int4`
/// and `int8` `w..a16`.
struct TileView {
  TilePanels panels;
  TileReading reading;
};
TileView tile_view(const PackedMatrix& matrix, Reading reading);

/// A matrix for readings in integers, from panel `first` on.
struct IntegerView {
  IntegerPanels panels;
  IntegerWeights weights;
};
IntegerView integer_view(const PackedMatrix& matrix, int64_t first, int64_t panel_count);

}  // namespace verbatim
