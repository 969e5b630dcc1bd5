#pragma once

#include "formats/packed_matrix.h"

namespace verbatim {

// Views of stores in the form that kernels read.

/// A view of a matrix as tiles, for the format `bf16` and for the readings that unpack tiles: `mxfp4-w4a16`,
/// `bsfp-full`, `mxbf16-full`, and those of `int4`, `int8` and `q8_0` where activations are in BF16.
struct TileView {
  TilePanels panels;
  TileReading reading;
};
/// Makes the view of a matrix as tiles in one of these readings.
TileView tile_view(const PackedMatrix& matrix, Reading reading);

/// A view of some panels of a matrix for products in integers.
struct IntegerView {
  IntegerPanels panels;
  IntegerWeights weights;
};
/// Makes the view of panels first .. first + panel_count - 1.
IntegerView integer_view(const PackedMatrix& matrix, int64_t first, int64_t panel_count);

}  // namespace verbatim
