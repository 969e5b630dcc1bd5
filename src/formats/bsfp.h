#pragma once

#include "formats/packed_matrix.h"

namespace verbatim {

/// BSFP, bit-sharing floating point (SPEQ §III-A and III-B, Algorithm 1, Figures 3 and 5): a 4-bit
/// draft that is part of the full weights. The four used bits e of the exponent of |w| < 2 become a 3-bit
/// code c and a flag; sign and c are the draft, the rest of the weight lies beside them:
///
///   e               0,1  2,3  4,5  6,7   8    9    10   11  12,13  14,15
///   c               001  001  011  011  100  000  101  010   110    111
///   flag             1    0    1    0    0    1    0    1     0      0
///   draft exponent   2    2    6    6    8    9   10   11    12     14
///   draft magnitude  0    0    0    0   1/2   1    2    4     8     32
///
/// Full exponent: flag 0: {c, lowest bit}; flag 1: 000 -> 100, 010 -> 101, 001 -> 000, 011 -> 010, then the
/// lowest bit.
///
/// Draft value: ± magnitude · s, s a number per group of 128 that makes the squared error least (SPEQ eq. 4).
/// The magnitudes are the paper's, 2^(draft exponent - 9), as far as bytes can hold twice their values: the
/// two smallest become 0. A scale has six significant bits and lies between 2^-57 and 2^16, so that no sum
/// over a group of products with int8 activations is infinite.
///
/// e counts exponent fields from a window's first, which is even. The paper's window is that of |w| < 2
/// (field 112 in BF16, 0 in F16), and Algorithm 1 brings larger tensors into it by a factor. Here the window
/// itself moves, to where the draft of the matrix has the least squared error: small weights, as wide models
/// have them, are otherwise drafted by the two coarse codes. Weights outside the window (zero among them in
/// BF16), which the paper rounds, are escaped weights and stay what they are (escaped_weights.h); in a draft
/// those above it are the largest magnitude and those below it zero.
///
/// Planes: 0  codes   [panel][tile][256]  tile_codes.h; bit 3 is the sign
///         1  scales  [panel][groups][16] BF16
///         2  rest    BF16 [panel][tile]{512 bytes: lowest exponent bit and mantissa, rest_byte(); 64 bytes
///         of
///                    flags: word (column, k parity), bit k / 2}
///                    F16 [panel][tile]{512 bytes: the low 8 mantissa bits, rest_byte(); 256 bytes of nibbles
///                    in the order of codes: flag, lowest exponent bit, upper 2 mantissa bits}
///         3  table   uint16 [32]         sign and upper exponent bits by flag and code
///         4..7  escaped weights          positions in the order of a bf16, or an f16, panel
/// BF16: 13.16 bits per weight, F16: 16.16, and 24 per escaped weight. Readings: `draft`, activations in
/// int8, groups of 128; `full`, the original bits.
const FormatOperations& bsfp_operations();

}  // namespace verbatim
