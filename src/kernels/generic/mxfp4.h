#pragma once

#include "kernels/generic/panel_loop.h"
#include "kernels/kernel_table.h"

namespace verbatim::generic {

/// Bytes of codes per panel and group: 16 columns × 32 weights × 4 bits.
inline constexpr int64_t kMxfp4GroupBytes = 256;

/// A view of an Int8Rows × Mxfp4Panels product for the loop over blocks.
struct Mxfp4Product {
  const Int8Rows* a;
  const Mxfp4Panels* weights;
  float* c;
  int64_t c_stride;
  int64_t rows;
  int64_t panel_count;
};

/// The late-scaling product (ML-SpecQD Fig. 4). `Dot` supplies the instruction set's part:
///   Codes: 64 packed bytes; Dot::low(codes), Dot::high(codes): 64 weights as bytes, plus Dot::kOffset each
///   Dot::Sum: 16 integer sums; Dot::add(sum, weights, quad): adds dot products of 4 weights with 4 int8
///   activations Dot::subtract(sum, value), Dot::to_float(sum)
template <typename V, typename Dot>
struct Mxfp4Micro {
  static constexpr int kSums = 1;

  template <int kRows, int kPanelBlock>
  static void block(const Mxfp4Product& p, int64_t row, int64_t panel) {
    static_assert(kPanelBlock == 1);
    const int64_t groups = p.a->k / kInnerStep;
    const uint8_t* const codes = p.weights->codes + panel * groups * kMxfp4GroupBytes;
    const uint8_t* const scales = p.weights->scales + panel * groups * kPanelWidth;
    V sums[kRows];
    for (int r = 0; r < kRows; ++r) sums[r] = V::set(0.0f);
    for (int64_t g = 0; g < groups; ++g) {
      typename Dot::Sum dots[kRows];
      for (int r = 0; r < kRows; ++r) dots[r] = Dot::zero();
      for (int block = 0; block < 4; ++block) {
        const auto packed = Dot::load(codes + g * kMxfp4GroupBytes + block * 64);
        const auto low = Dot::low(packed);
        const auto high = Dot::high(packed);
        for (int r = 0; r < kRows; ++r) {
          const int8_t* const quads = p.a->codes + (row + r) * p.a->k + g * kInnerStep + block * 8;
          dots[r] = Dot::add(dots[r], low, quads);
          dots[r] = Dot::add(dots[r], high, quads + 4);
        }
      }
      const V weight_scale = V::from_exponents(scales + g * kPanelWidth);
      for (int r = 0; r < kRows; ++r) {
        const int64_t group = (row + r) * groups + g;
        const auto dot = Dot::subtract(dots[r], Dot::kOffset * p.a->sums[group]);
        const V scale = V::set(p.a->scales[group]) * weight_scale;
        sums[r] = sums[r] + Dot::to_float(dot) * scale;
      }
    }
    float* const c = p.c + row * p.c_stride + panel * kPanelWidth;
    for (int r = 0; r < kRows; ++r) sums[r].store(c + r * p.c_stride);
  }
};

template <typename V, typename Dot>
void panels_mxfp4_w4a8(const Int8Rows& a, const Mxfp4Panels& weights, float* c, int64_t c_stride) {
  for_each_block<Mxfp4Micro<V, Dot>>(Mxfp4Product{&a, &weights, c, c_stride, a.rows, weights.panel_count});
}

}  // namespace verbatim::generic
