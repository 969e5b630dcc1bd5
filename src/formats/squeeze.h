#pragma once

#include <span>

#include "formats/packed_matrix.h"

namespace verbatim {

/// The formats `squeeze3` and `squeeze4` (SqueezeLLM; thesis ch. 3): every output column has a table of 8 or
/// 16 values, found by weighted k-means (squeeze_quantizer.h), and each weight is a code of 3 or 4 bits that
/// names an entry. The most sensitive weights and the outliers (sparse_split.h) are stored in a sparse
/// matrix, in BF16.
///
/// Planes: 0  codes    `squeeze4` [panel][k/128][16][64]: 32 words of 16 bits, whose bits 4 s .. 4 s + 3 are
///                     the code of k = 128 g + 32 s + word
///                     `squeeze3` [panel][k/256][16][96]: 32 words whose bits 2 s, 2 s + 1 are the low bits
///                     of the code of k = 256 g + 32 s + word, then 32 bytes whose bit s is its upper bit
///         1  tables   BF16 [columns][8 or 16]
///         2  starts   uint32 [columns + 1]  the sparse part in CSR form: a column's first entry
///         3  inputs   uint16 [entries]      the input that the entry belongs to
///         4  values   BF16 [entries]        the weight less the table's entry that its code names
/// k is padded to whole groups; weights of the padding have the code of the entry nearest to zero. Each
/// format has one reading: looked-up weights meet activations in BF16, sparse weights meet activations in
/// F32.
const FormatOperations& squeeze3_operations();
const FormatOperations& squeeze4_operations();

/// The number of inputs in a group of codes.
inline constexpr int64_t squeeze_group(Format format) {
  return format == Format::kSqueeze4 ? 128 : 256;
}
/// The number of groups of codes in a column.
inline int64_t squeeze_groups(const PackedMatrix& matrix) {
  const int64_t group = squeeze_group(matrix.format);
  return (matrix.k + group - 1) / group;
}

/// Whether a format has a sparse part.
inline constexpr bool has_sparse_part(Format format) {
  return format == Format::kSqueeze3 || format == Format::kSqueeze4;
}
/// The inputs of the weights that the sparse part of a matrix holds of an output column.
std::span<const uint16_t> sparse_inputs(const PackedMatrix& matrix, int64_t column);

}  // namespace verbatim
