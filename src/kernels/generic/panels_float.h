#pragma once

#include "kernels/generic/panel_loop.h"

namespace verbatim::generic {

/// Sets the sums of a block before the first product: to the contents of c if `accumulate`, else to zeros.
template <typename V, int kRows, int kPanels>
[[gnu::always_inline]] inline void load_sums(V (&sums)[kRows][kPanels], const float* c, int64_t c_stride,
                                             bool accumulate) {
  for (int r = 0; r < kRows; ++r) {
    for (int j = 0; j < kPanels; ++j) {
      sums[r][j] = accumulate ? V::load(c + r * c_stride + j * kPanelWidth) : V::set(0.0f);
    }
  }
}

template <typename V, int kRows, int kPanels>
[[gnu::always_inline]] inline void store_sums(const V (&sums)[kRows][kPanels], float* c, int64_t c_stride) {
  for (int r = 0; r < kRows; ++r) {
    for (int j = 0; j < kPanels; ++j) sums[r][j].store(c + r * c_stride + j * kPanelWidth);
  }
}

/// The product with panels in F32 or F16: one multiply-add per weight, in the order of k.
template <typename V, typename Weight>
struct FloatMicro {
  static constexpr int kSums = V::kSums;

  template <int kRows, int kPanelBlock>
  static void block(const PanelProduct<float, Weight>& p, int64_t row, int64_t panel) {
    V sums[kRows][kPanelBlock];
    float* const c = p.c + row * p.c_stride + panel * kPanelWidth;
    load_sums(sums, c, p.c_stride, p.accumulate);
    const float* const a = p.a + row * p.a_stride;
    const Weight* const weights = p.panels + panel * p.panel_stride;
    for (int64_t k = 0; k < p.k; ++k) {
      for (int j = 0; j < kPanelBlock; ++j) {
        const V w = V::load(weights + j * p.panel_stride + k * kPanelWidth);
        for (int r = 0; r < kRows; ++r) sums[r][j] = fma(V::set(a[r * p.a_stride + k]), w, sums[r][j]);
      }
    }
    store_sums(sums, c, p.c_stride);
  }
};

/// The product with panels in BF16, whose pairs are widened to float: one multiply-add per weight, in the
/// order of k. Every instruction set that uses this gives the same bits.
template <typename V>
struct Bf16Micro {
  static constexpr int kSums = V::kSums;

  template <int kRows, int kPanelBlock>
  static void block(const PanelProduct<BFloat16, BFloat16>& p, int64_t row, int64_t panel) {
    V sums[kRows][kPanelBlock];
    float* const c = p.c + row * p.c_stride + panel * kPanelWidth;
    load_sums(sums, c, p.c_stride, p.accumulate);
    const BFloat16* const a = p.a + row * p.a_stride;
    const BFloat16* const weights = p.panels + panel * p.panel_stride;
    for (int64_t k = 0; k < p.k; k += 2) {
      for (int j = 0; j < kPanelBlock; ++j) {
        V even;
        V odd;
        V::load_pairs(weights + j * p.panel_stride + k * kPanelWidth, &even, &odd);
        for (int r = 0; r < kRows; ++r) {
          // Read as one word: from two 16-bit loads GCC 12 makes vector loads that reach past the last row.
          uint32_t pair;
          __builtin_memcpy(&pair, a + r * p.a_stride + k, sizeof pair);
          sums[r][j] = fma_of_bf16(V::set(__builtin_bit_cast(float, pair << 16)), even, sums[r][j]);
          sums[r][j] = fma_of_bf16(V::set(__builtin_bit_cast(float, pair & 0xffff0000u)), odd, sums[r][j]);
        }
      }
    }
    store_sums(sums, c, p.c_stride);
  }
};

/// How many weights ahead of the product memory is asked for them, so that reading goes on while a few rows
/// multiply.
inline constexpr int64_t kWidenedAhead = 2048;

/// The product of activations that are floats already with panels in BF16: with the bits of Bf16Micro, as
/// widening is exact. An activation for all lanes then is a load, which takes no time from the multipliers.
template <typename V>
struct WidenedMicro {
  static constexpr int kSums = V::kSums;

  template <int kRows, int kPanelBlock>
  static void block(const PanelProduct<float, BFloat16>& p, int64_t row, int64_t panel) {
    V sums[kRows][kPanelBlock];
    float* const c = p.c + row * p.c_stride + panel * kPanelWidth;
    load_sums(sums, c, p.c_stride, p.accumulate);
    const float* const a = p.a + row * p.a_stride;
    const BFloat16* const weights = p.panels + panel * p.panel_stride;
    for (int64_t k = 0; k < p.k; k += 2) {
      for (int j = 0; j < kPanelBlock; ++j) {
        V even;
        V odd;
        __builtin_prefetch(weights + j * p.panel_stride + k * kPanelWidth + kWidenedAhead);
        V::load_pairs(weights + j * p.panel_stride + k * kPanelWidth, &even, &odd);
        for (int r = 0; r < kRows; ++r)
          sums[r][j] = fma_of_bf16(V::set(a[r * p.a_stride + k]), even, sums[r][j]);
        for (int r = 0; r < kRows; ++r)
          sums[r][j] = fma_of_bf16(V::set(a[r * p.a_stride + k + 1]), odd, sums[r][j]);
      }
    }
    store_sums(sums, c, p.c_stride);
  }
};

/// The number of activations that are widened at a time. They stay in the second cache while all panels meet
/// them.
inline constexpr int64_t kWidenedFloats = 24 * 1024;
/// The largest number of rows that are widened together.
inline constexpr int64_t kWidenedRows = 64;

/// The product of a few rows, or of many in turns. The rows' sums wait in c while the next inputs are
/// widened, so each is still summed in the order of k.
template <typename V>
void panels_bf16_of_rows(const PanelProduct<BFloat16, BFloat16>& product) {
  alignas(64) float widened[kWidenedFloats];
  const int64_t most = kWidenedFloats / product.rows / kInnerStep * kInnerStep;
  for (int64_t k = 0; k < product.k; k += most) {
    const int64_t inputs = product.k - k < most ? product.k - k : most;
    for (int64_t r = 0; r < product.rows; ++r) {
      const BFloat16* const from = product.a + r * product.a_stride + k;
      for (int64_t i = 0; i < inputs; i += kPanelWidth) V::load(from + i).store(widened + r * inputs + i);
    }
    for_each_block<WidenedMicro<V>>(PanelProduct<float, BFloat16>{.a = widened,
                                                                  .a_stride = inputs,
                                                                  .rows = product.rows,
                                                                  .panels = product.panels + k * kPanelWidth,
                                                                  .panel_stride = product.panel_stride,
                                                                  .panel_count = product.panel_count,
                                                                  .k = inputs,
                                                                  .c = product.c,
                                                                  .c_stride = product.c_stride,
                                                                  .accumulate = product.accumulate || k > 0});
  }
}

template <typename V>
void panels_bf16(const PanelProduct<BFloat16, BFloat16>& product) {
  if (product.rows == 1) return for_each_block<Bf16Micro<V>>(product);
  PanelProduct<BFloat16, BFloat16> some = product;
  for (int64_t row = 0; row < product.rows; row += kWidenedRows) {
    some.a = product.a + row * product.a_stride;
    some.c = product.c + row * product.c_stride;
    some.rows = product.rows - row < kWidenedRows ? product.rows - row : kWidenedRows;
    panels_bf16_of_rows<V>(some);
  }
}

template <typename V>
void panels_f16(const PanelProduct<float, Float16>& product) {
  for_each_block<FloatMicro<V, Float16>>(product);
}

template <typename V>
void panels_f32(const PanelProduct<float, float>& product) {
  for_each_block<FloatMicro<V, float>>(product);
}

}  // namespace verbatim::generic
