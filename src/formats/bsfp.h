#pragma once

#include "formats/packed_matrix.h"

namespace verbatim {

/// The format `bsfp`, bit-sharing floating point (SPEQ §III-A and III-B, Algorithm 1, Figures 3 and 5): the
/// draft is four of the full weight's own bits. The four used bits e of the exponent of |w| < 2 become a
/// 3-bit code c and a flag. Sign and c are the draft; flag, lowest exponent bit and mantissa are stored
/// beside them:
///
///   e               0,1  2,3  4,5  6,7   8    9    10   11  12,13  14,15
///   c               001  001  011  011  100  000  101  010   110    111
///   flag             1    0    1    0    0    1    0    1     0      0
///   draft exponent   2    2    6    6    8    9   10   11    12     14
///   draft magnitude  0    0    0    0   1/2   1    2    4     8     32
///
/// The full exponent is {c, lowest bit} where the flag is 0. Where it is 1, c is replaced first: 000 by 100,
/// 010 by 101, 001 by 000 and 011 by 010.
///
/// The value of a draft is ± magnitude · s, where s is the scale of a group of 128 weights that minimises
/// their squared error (SPEQ eq. 4). The magnitudes are the paper's, 2^(draft exponent - 9), except that the
/// two smallest become 0, because bytes must hold twice the magnitudes. A scale has six significant bits and
/// lies between 2^-57 and 2^16, so that no sum over a group of products with int8 activations is infinite.
///
/// The code e counts exponent fields from the first one of a window, which is even. The paper's window is
/// that of |w| < 2 (from field 112 in BF16, 0 in F16), and Algorithm 1 scales larger tensors into it. Here
/// each matrix has the window in which its draft has the least squared error: the small weights of wide
/// models would otherwise have to be drafted by the two coarse codes. Weights outside the window (in BF16
/// zero is one), which the paper rounds, are escaped weights and stay exact (escaped_weights.h). In a draft,
/// weights above the window have the largest magnitude and weights below it are zero.
///
/// Planes: 0  codes   [panel][tile][256]  tile_codes.h; bit 3 is the sign
///         1  scales  [panel][groups][16] BF16
///         2  rest    BF16 [panel][tile]{512 bytes: lowest exponent bit and mantissa, rest_byte(); 64 bytes:
///                    flags, word (column, k parity), bit k / 2}
///                    F16 [panel][tile]{512 bytes: the low 8 mantissa bits, rest_byte(); 256 bytes of nibbles
///                    in the order of codes: flag, lowest exponent bit, upper 2 mantissa bits}
///         3  table   uint16 [32]         sign and upper exponent bits by flag and code
///         4..7  escaped weights          positions in the order of a bf16, or an f16, panel
/// A weight takes 13.16 bits for BF16 and 16.16 for F16, and an escaped weight 24 more. Readings:
/// `bsfp-draft`, whose activations are in int8, in groups of 128; `bsfp-full`, which gives the original bits;
/// `bsfp-draft-a16`, the arithmetic of SPEQ's accelerator (§IV-C): all eight magnitudes as the paper has
/// them, 2^-7 and 2^-3 in place of the zeros, the same scales, and activations in F16. It is for measuring
/// how often such drafts are accepted, and unpacks the weights for every product.
const FormatOperations& bsfp_operations();

/// Unpacks the drafts of a panel in the reading `bsfp-draft-a16` to [k][16] floats, which hold them exactly.
void unpack_bsfp_levels(const PackedMatrix& matrix, int64_t panel, float* out);

}  // namespace verbatim
