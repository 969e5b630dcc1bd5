#pragma once

#include <cstdint>

#include "base/aligned_buffer.h"
#include "kernels/kernel_table.h"

namespace verbatim {

/// A matrix of k × columns numbers that are stored as codes: number = code · scale + zero, where 8-bit codes
/// of two halves (kCodesBoth) count sixteenths of the scale, the lower halves stored with 8 added:
/// number = (16 · upper + lower - 8) · scale / 16 + zero (QuantSpec §4.2).
struct CodedMatrix {
  CodeStorage storage;
  const uint8_t* codes;  ///< see CodeProduct
  const uint8_t* lower;  ///< kCodesBoth: the lower halves
  int64_t k;             ///< a multiple of 64
  int64_t columns;       ///< a multiple of 16
  /// A group has a scale and a zero point for each of the k inner dimensions and spans `group` columns, a
  /// multiple of 16: [columns / group][k]. 0: each column has one for all its k: [columns].
  int64_t group;
  const BFloat16* scales;
  const BFloat16* zeros;
};

/// Space for one thread's products with codes.
struct CodeScratch {
  Buffer<int8_t> row_codes;  // [rows][2][k]
  Buffer<int32_t> products;  // [rows][columns]
  Buffer<float> steps;       // [rows]
  Buffer<float> scales;      // [rows], see ScaledRow
  Buffer<float> zeros;       // [rows]
  Buffer<BFloat16> ones;     // [k]

  void reserve(int64_t rows, int64_t k, int64_t columns);
};

/// What to fetch while codes are multiplied, beside each of their planes.
struct CodesAhead {
  FetchAhead codes;
  FetchAhead lower;
  int64_t before_products = 0;  ///< bytes of each plane that are fetched while the rows are quantized

  /// Fetches the bytes begin .. end - 1 of what is left of each plane.
  void fetch(int64_t begin, int64_t end) const {
    codes.fetch(codes.position + begin, codes.position + end);
    lower.fetch(lower.position + begin, lower.position + end);
  }
};

/// c = a · matrix for `rows` rows of BF16, added to what c holds if `accumulate`. An output is one sum of
/// integers, exact, scaled and added to a sum of zero points: it depends on its own row and on the matrix
/// alone. The scratch has room for the rows.
/// `ahead` is fetched meanwhile.
void coded_product(const BFloat16* a, int64_t a_stride, int64_t rows, const CodedMatrix& matrix, float* c,
                   int64_t c_stride, bool accumulate, CodeScratch& scratch, const CodesAhead& ahead = {});

}  // namespace verbatim
