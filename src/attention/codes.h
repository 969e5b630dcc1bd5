#pragma once

#include <cstdint>

#include "base/aligned_buffer.h"
#include "kernels/kernel_table.h"

namespace verbatim {

/// A matrix of k × columns numbers that are stored as codes: number = code · scale + zero. Codes of two
/// halves (kCodesBoth) have eight bits and count sixteenths of the scale, and their lower halves are stored
/// with 8 added: number = (16 · upper + lower - 8) · scale / 16 + zero (QuantSpec §4.2).
struct CodedMatrix {
  CodeStorage storage;
  const uint8_t* codes;  ///< laid out as CodeProduct::codes
  const uint8_t* lower;  ///< the lower halves, for kCodesBoth
  int64_t k;             ///< a multiple of 64
  int64_t columns;       ///< a multiple of 16
  /// The number of columns in a group, a multiple of 16. A group has a scale and a zero point for each of the
  /// k inner dimensions: [columns / group][k]. 0: each column has one scale and one zero point for all inner
  /// dimensions: [columns].
  int64_t group;
  const BFloat16* scales;
  const BFloat16* zeros;
};

/// The buffers of one thread's products with codes.
struct CodeScratch {
  Buffer<int8_t> row_codes;  // [rows][2][k]
  Buffer<int32_t> products;  // [rows][columns]
  Buffer<float> steps;       // [rows]
  Buffer<float> scales;      // [rows], see ScaledRow
  Buffer<float> zeros;       // [rows]
  Buffer<BFloat16> ones;     // [k]

  void reserve(int64_t rows, int64_t k, int64_t columns);
};

/// The memory to prefetch while codes are multiplied: one run for each plane of codes.
struct CodesAhead {
  FetchAhead codes;
  FetchAhead lower;
  int64_t before_products = 0;  ///< bytes of each plane that are fetched while the rows are quantized

  /// Fetches bytes begin .. end - 1 of each run, counted from its current position.
  void fetch(int64_t begin, int64_t end) const {
    codes.fetch(codes.position + begin, codes.position + end);
    lower.fetch(lower.position + begin, lower.position + end);
  }
};

/// Computes c = a · matrix for `rows` rows of BF16, or adds that to c if `accumulate`. An output is an exact
/// sum of integers, which is scaled and added to a sum of zero points, so it depends on its own row and on
/// the matrix alone. The scratch must have room for the rows. `ahead` is prefetched meanwhile.
void coded_product(const BFloat16* a, int64_t a_stride, int64_t rows, const CodedMatrix& matrix, float* c,
                   int64_t c_stride, bool accumulate, CodeScratch& scratch, const CodesAhead& ahead = {});

}  // namespace verbatim
