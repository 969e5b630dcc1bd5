#include "attention/codes.h"

#include <algorithm>

#include "base/matrix.h"
#include "kernels/dispatch.h"

namespace verbatim {

namespace {

/// The factor on the matrix's scales for the last place of a code: 1/16 for codes of two halves.
float code_unit(CodeStorage storage) {
  return storage == kCodesBoth ? 1.0f / 16 : 1.0f;
}

/// The part of a scale that is subtracted for each code, because lower halves are stored with 8 added.
float code_shift(CodeStorage storage) {
  return storage == kCodesBoth ? 0.5f : 0.0f;
}

/// The memory to prefetch during group `group` of `groups`, each of `bytes` bytes of codes.
CodesAhead beside_group(CodesAhead ahead, int64_t group, int64_t groups, int64_t bytes) {
  ahead.before_products /= groups;
  for (FetchAhead* const plane : {&ahead.codes, &ahead.lower}) {
    plane->position += group * (ahead.before_products + bytes * plane->rate / FetchAhead::kEvenly);
  }
  return ahead;
}

/// Quantizes the products of rows and scales, and writes their products with the codes of the columns from
/// `column` on to the scratch.
void multiply_scaled_rows(const BFloat16* a, int64_t a_stride, int64_t rows, const CodedMatrix& matrix,
                          int64_t column, int64_t columns, const BFloat16* scales, const BFloat16* zeros,
                          CodeScratch& scratch, CodesAhead ahead) {
  const KernelTable& kernel = kernels();
  const int64_t k = matrix.k;
  const float unit = code_unit(matrix.storage);
  for (int64_t r = 0; r < rows; ++r) {
    ahead.fetch(ahead.before_products * r / rows, ahead.before_products * (r + 1) / rows);
    const auto i = static_cast<size_t>(r);
    const ScaledRow row =
        kernel.quantize_scaled_row(a + r * a_stride, scales, zeros, k, scratch.row_codes.data() + r * 2 * k);
    scratch.steps[i] = row.step * unit;
    scratch.scales[i] = row.scales;
    scratch.zeros[i] = row.zeros;
  }
  ahead.codes.position += ahead.before_products;
  ahead.lower.position += ahead.before_products;
  const int64_t offset = column / kPanelWidth * k / kCodeTileInner * code_tile_bytes(matrix.storage);
  kernel.code_product[matrix.storage]({.a = scratch.row_codes.data(),
                                       .rows = rows,
                                       .codes = matrix.codes + offset,
                                       .lower = matrix.lower == nullptr ? nullptr : matrix.lower + offset,
                                       .panel_count = columns / kPanelWidth,
                                       .k = k,
                                       .c = scratch.products.data(),
                                       .c_stride = columns,
                                       .ahead = ahead.codes,
                                       .ahead_lower = ahead.lower});
}

/// Multiplies with one group of columns whose inner dimensions have scales, which are multiplied into the
/// rows.
void group_product(const BFloat16* a, int64_t a_stride, int64_t rows, const CodedMatrix& matrix,
                   int64_t group, float* c, int64_t c_stride, bool accumulate, CodeScratch& scratch,
                   const CodesAhead& ahead) {
  const int64_t k = matrix.k;
  const int64_t first = group * matrix.group;
  multiply_scaled_rows(a, a_stride, rows, matrix, first, matrix.group, matrix.scales + group * k,
                       matrix.zeros + group * k, scratch, ahead);
  for (int64_t r = 0; r < rows; ++r) {
    const auto i = static_cast<size_t>(r);
    const float constant = scratch.zeros[i] - code_shift(matrix.storage) * scratch.scales[i];
    kernels().dequantize_sums(scratch.products.data() + r * matrix.group, matrix.group, scratch.steps[i],
                              constant, accumulate, c + r * c_stride + first);
  }
}

/// Multiplies with columns that have a scale each, by which the sums are multiplied.
void column_product(const BFloat16* a, int64_t a_stride, int64_t rows, const CodedMatrix& matrix, float* c,
                    int64_t c_stride, bool accumulate, CodeScratch& scratch, const CodesAhead& ahead) {
  const BFloat16* const ones = scratch.ones.data();
  multiply_scaled_rows(a, a_stride, rows, matrix, 0, matrix.columns, ones, ones, scratch, ahead);
  const float shift = code_shift(matrix.storage);
  for (int64_t r = 0; r < rows; ++r) {
    const auto i = static_cast<size_t>(r);
    const int32_t* const products = scratch.products.data() + r * matrix.columns;
    float* const out = c + r * c_stride;
    for (int64_t j = 0; j < matrix.columns; ++j) {
      const float scale = to_float(matrix.scales[j]);
      const float sum = static_cast<float>(products[j]) * scratch.steps[i] * scale +
                        (to_float(matrix.zeros[j]) - shift * scale) * scratch.scales[i];
      out[j] = accumulate ? out[j] + sum : sum;
    }
  }
}

}  // namespace

void CodeScratch::reserve(int64_t rows, int64_t k, int64_t columns) {
  row_codes.reserve(static_cast<size_t>(rows * 2 * k));
  products.reserve(static_cast<size_t>(rows * columns));
  steps.reserve(static_cast<size_t>(rows));
  scales.reserve(static_cast<size_t>(rows));
  zeros.reserve(static_cast<size_t>(rows));
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
  const int64_t groups = matrix.columns / matrix.group;
  const int64_t bytes = matrix.group * matrix.k / (matrix.storage == kCodesBytes ? 1 : 2);
  for (int64_t group = 0; group < groups; ++group) {
    group_product(a, a_stride, rows, matrix, group, c, c_stride, accumulate, scratch,
                  beside_group(ahead, group, groups, bytes));
  }
}

}  // namespace verbatim
