#pragma once

#include "formats/packed_matrix.h"

namespace verbatim {

/// The format `q8_0`: the codes and scales that a tensor has in the file (PanelSource::codes), so that no
/// weight is rounded. Every code is one of -128 .. 127, and 32 along k share an F16 scale: 8.5 bits a weight.
///
/// Planes: 0  upper   [panel][tile][256]   tile_codes.h; floor(code / 16) + 8, from 0 to 15
///         1  scales  F16 [panel][tile][16]
///         2  lower   [panel][tile][256]   tile_codes.h; code - 16 floor(code / 16), from 0 to 15
/// Where a matrix has no codes of its own, pack_matrix() refuses the format, and packing floats in it rounds
/// them as `int8` does. Readings: `q8_0`, with activations in sixteen bits where kernels have a
/// halves_product, else with the bits of `int8-w8a16` for the same codes; `q8_0-draft`, planes 0 and 1
/// alone, 4.5 bits a weight. There an upper half stands for the middle of the sixteen codes that have it, 16
/// floor(code / 16) + 7.5, and meets int8 activations. It is the idea of QuantSpec's hierarchical cache, for
/// weights.
const FormatOperations& q8_0_operations();

/// Whether upper halves say more than signs, as drafts in them need. The codes of files in Q4_0 and Q5_0 are
/// so small that they do not; those of a matrix of zeros do, as its scales are zero. Looks at the first codes
/// of a matrix in `q8_0`, and where these are small at some of its scales: it is asked for each product.
bool upper_halves_tell(const PackedMatrix& matrix);

}  // namespace verbatim
