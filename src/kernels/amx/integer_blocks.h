#pragma once

#include "kernels/amx/tiles.h"
#include "kernels/generic/integer.h"

namespace verbatim::amx {

// What products in integers on tiles have in common: they unpack weights to bytes, multiply tiles of them
// with activations, and scale the sums that tiles of it are stored as.

/// The bytes of an int8 product for one tile of codes, in quads: symmetric codes less 8, asymmetric
/// ones as they are.
template <int kKind>
VERBATIM_INLINE void unpack_bytes(const uint8_t* codes, uint8_t* out) {
  const __m512i less_eight =
      _mm512_broadcast_i32x4(_mm_setr_epi8(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7));
  const __m512i mask = _mm512_set1_epi8(15);
  for (int block = 0; block < 4; ++block) {
    const __m512i packed = _mm512_loadu_si512(codes + block * 64);
    __m512i low = _mm512_and_si512(packed, mask);
    __m512i high = _mm512_and_si512(_mm512_srli_epi16(packed, 4), mask);
    if constexpr (kKind != kIntegerInt4Asymmetric) {
      low = _mm512_shuffle_epi8(less_eight, low);
      high = _mm512_shuffle_epi8(less_eight, high);
    }
    _mm512_store_si512(out + block * 128, low);
    _mm512_store_si512(out + block * 128 + 64, high);
  }
}

VERBATIM_INLINE __m512 scales_of(const uint8_t* scales) {
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(scales));
  return _mm512_mul_ps(_mm512_cvtph_ps(halves), _mm512_set1_ps(2.0f));
}

/// The loop over the steps of k, for kRows rows from `row` on, of which `rows` are there, by kPanels panels
/// that are `apart` from each other. `Block` derives from it and says what a step is:
///   steps()
///   unpack(panel, step, j)           the weights of the j-th panel
///   dot<j>(panel, step)              their products
///   add_scaled(panel, step, j, sums) sums += the products, scaled
/// The scaling stays kLag steps behind.
template <typename Block, int kRows, int kPanels, int kLag>
class IntegerBlocks {
 public:
  static constexpr int kMostRows = kRows;

  IntegerBlocks(const Int8Rows& a, const IntegerPanels& weights, int64_t row, int64_t rows)
      : a_(a), weights_(weights), row_(row), rows_(rows) {}

  void multiply(int64_t panel, int64_t apart, float* c, int64_t c_stride) {
    Block& block = static_cast<Block&>(*this);
    const int64_t steps = block.steps();
    __m512 sums[kPanels][kRows];
    for (auto& panel_sums : sums) {
      for (__m512& sum : panel_sums) sum = _mm512_setzero_ps();
    }
    for (int j = 0; j < kPanels; ++j) block.unpack(panel + j * apart, 0, j);
    // Unpacking, multiplying and scaling are each a step behind the one before, so that none waits.
    for (int64_t t = 0; t < steps; ++t) {
      const auto each = [&]<int kPanel>() __attribute__((always_inline)) {
        if constexpr (kPanel < kPanels) {
          const int64_t at = panel + kPanel * apart;
          if (t + 1 < steps) block.unpack(at, t + 1, kPanel);
          block.template dot<kPanel>(at, t);
          if (t >= kLag) block.add_scaled(at, t - kLag, kPanel, sums[kPanel]);
        }
      };
      each.template operator()<0>();
      each.template operator()<1>();
    }
    for (int j = 0; j < kPanels; ++j) {
      const int64_t at = panel + j * apart;
      for (int64_t t = steps < kLag ? 0 : steps - kLag; t < steps; ++t) block.add_scaled(at, t, j, sums[j]);
      for (int r = 0; r < kRows; ++r) {
        if (r < rows_) _mm512_storeu_ps(c + (row_ + r) * c_stride + at * kPanelWidth, sums[j][r]);
      }
    }
  }

 protected:
  Int8Rows a_;
  IntegerPanels weights_;
  int64_t row_;
  int64_t rows_;
  int64_t tiles_ = a_.k / kInnerStep;
};

/// All rows by all panels, sixteen rows at a time. Eight rows leave room for the sums of two panels in
/// registers, sixteen for those of one. `configure(rows)` sets the tiles up for so many.
template <typename EightByTwo, typename SixteenByOne, typename Configure>
VERBATIM_INLINE void multiply_blocks(const Int8Rows& a, const IntegerPanels& weights, float* c,
                                     int64_t c_stride, Configure configure) {
  for (int64_t row = 0; row < a.rows; row += 16) {
    const int64_t rows = a.rows - row < 16 ? a.rows - row : 16;
    configure(static_cast<int>(rows));
    const int64_t paired = rows <= EightByTwo::kMostRows ? weights.panel_count / 2 : 0;
    if (paired > 0) {
      EightByTwo block(a, weights, row, rows);
      for (int64_t panel = 0; panel < paired; ++panel) block.multiply(panel, paired, c, c_stride);
    }
    if (2 * paired == weights.panel_count) continue;
    SixteenByOne block(a, weights, row, rows);
    for (int64_t panel = 2 * paired; panel < weights.panel_count; ++panel) {
      block.multiply(panel, 0, c, c_stride);
    }
  }
  _tile_release();
}

}  // namespace verbatim::amx
