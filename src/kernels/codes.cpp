#include "kernels/codes.h"

#include <algorithm>

#include "base/matrix.h"
#include "kernels/dispatch.h"

namespace verbatim {

namespace {

/// The scale of a code's last place, as a part of the matrix's scales.
float code_unit(CodeStorage storage) {
  return storage == kCodesBoth ? 1.0f / 16 : 1.0f;
}

/// Fetching that goes on `offset` bytes further.
FetchAhead from_offset(FetchAhead ahead, int64_t offset) {
  ahead.position += offset;
  return ahead;
}

/// The sum of a row times a vector of scales and zero points, for codes of zero.
float constant_of(const BFloat16* a, const CodedMatrix& matrix, const BFloat16* scales,
                  const BFloat16* zeros) {
  const float sum = kernels().dot(a, zeros, matrix.k);
  return matrix.storage == kCodesBoth ? sum - 0.5f * kernels().dot(a, scales, matrix.k) : sum;
}

/// One group of columns, whose inner dimensions have scales: these go into the rows.
void group_product(const BFloat16* a, int64_t a_stride, int64_t rows, const CodedMatrix& matrix,
                   int64_t group, float* c, int64_t c_stride, bool accumulate, CodeScratch& scratch,
                   const CodesAhead& ahead) {
  const KernelTable& kernel = kernels();
  const int64_t k = matrix.k;
  const BFloat16* const scales = matrix.scales + group * k;
  const BFloat16* const zeros = matrix.zeros + group * k;
  for (int64_t r = 0; r < rows; ++r) {
    const auto i = static_cast<size_t>(r);
    scratch.steps[i] = kernel.fold(a + r * a_stride, scales, k, scratch.folded.data() + r * 2 * k);
    scratch.constants[i] = constant_of(a + r * a_stride, matrix, scales, zeros);
  }
  const int64_t first_panel = group * matrix.group / kPanelWidth;
  const int64_t offset = first_panel * k / kCodeTileInner * code_tile_bytes(matrix.storage);
  kernel.code_product[matrix.storage]({.a = scratch.folded.data(),
                                       .rows = rows,
                                       .codes = matrix.codes + offset,
                                       .lower = matrix.lower == nullptr ? nullptr : matrix.lower + offset,
                                       .panel_count = matrix.group / kPanelWidth,
                                       .k = k,
                                       .c = scratch.products.data(),
                                       .c_stride = matrix.group,
                                       .ahead = from_offset(ahead.codes, offset),
                                       .ahead_lower = from_offset(ahead.lower, offset)});
  const float unit = code_unit(matrix.storage);
  for (int64_t r = 0; r < rows; ++r) {
    const auto i = static_cast<size_t>(r);
    kernel.unfold(scratch.products.data() + r * matrix.group, matrix.group, scratch.steps[i] * unit,
                  scratch.constants[i], accumulate, c + r * c_stride + group * matrix.group);
  }
}

/// Columns with a scale each: these multiply the sums.
void column_product(const BFloat16* a, int64_t a_stride, int64_t rows, const CodedMatrix& matrix, float* c,
                    int64_t c_stride, bool accumulate, CodeScratch& scratch, const CodesAhead& ahead) {
  const KernelTable& kernel = kernels();
  const int64_t k = matrix.k;
  for (int64_t r = 0; r < rows; ++r) {
    const auto i = static_cast<size_t>(r);
    scratch.steps[i] =
        kernel.fold(a + r * a_stride, scratch.ones.data(), k, scratch.folded.data() + r * 2 * k);
    scratch.constants[i] = kernel.dot(a + r * a_stride, scratch.ones.data(), k);
  }
  kernel.code_product[matrix.storage]({.a = scratch.folded.data(),
                                       .rows = rows,
                                       .codes = matrix.codes,
                                       .lower = matrix.lower,
                                       .panel_count = matrix.columns / kPanelWidth,
                                       .k = k,
                                       .c = scratch.products.data(),
                                       .c_stride = matrix.columns,
                                       .ahead = ahead.codes,
                                       .ahead_lower = ahead.lower});
  const float unit = code_unit(matrix.storage);
  const float shift = matrix.storage == kCodesBoth ? 0.5f : 0.0f;
  for (int64_t r = 0; r < rows; ++r) {
    const auto i = static_cast<size_t>(r);
    const int32_t* const products = scratch.products.data() + r * matrix.columns;
    float* const out = c + r * c_stride;
    for (int64_t j = 0; j < matrix.columns; ++j) {
      const float scale = to_float(matrix.scales[j]);
      const float sum = static_cast<float>(products[j]) * (scratch.steps[i] * unit) * scale +
                        (to_float(matrix.zeros[j]) - shift * scale) * scratch.constants[i];
      out[j] = accumulate ? out[j] + sum : sum;
    }
  }
}

}  // namespace

void CodeScratch::reserve(int64_t rows, int64_t k, int64_t columns) {
  folded.reserve(static_cast<size_t>(rows * 2 * k));
  products.reserve(static_cast<size_t>(rows * columns));
  steps.reserve(static_cast<size_t>(rows));
  constants.reserve(static_cast<size_t>(rows));
  if (static_cast<size_t>(k) <= ones.size()) return;
  ones.reserve(static_cast<size_t>(k));
  std::fill_n(ones.data(), k, to_bfloat16(1.0f));
}

void coded_product(const BFloat16* a, int64_t a_stride, int64_t rows, const CodedMatrix& matrix, float* c,
                   int64_t c_stride, bool accumulate, CodeScratch& scratch, const CodesAhead& ahead) {
  if (matrix.group == 0) {
    column_product(a, a_stride, rows, matrix, c, c_stride, accumulate, scratch, ahead);
    return;
  }
  for (int64_t group = 0; group < matrix.columns / matrix.group; ++group) {
    group_product(a, a_stride, rows, matrix, group, c, c_stride, accumulate, scratch, ahead);
  }
}

}  // namespace verbatim
