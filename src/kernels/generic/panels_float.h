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

template <typename V>
void panels_bf16(const PanelProduct<BFloat16, BFloat16>& product) {
  for_each_block<Bf16Micro<V>>(product);
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
