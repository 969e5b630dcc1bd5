#include "kernels/avx512/mxfp4_codes.h"
#include "kernels/generic/mxfp4.h"
#include "kernels/generic/panel_loop.h"
#include "kernels/isa_tables.h"

namespace verbatim::avx512 {

namespace {

struct VnniDot : DotBase {
  VERBATIM_INLINE static Sum add(Sum sum, __m512i weights, const int8_t* quad) {
    return _mm512_dpbusd_epi32(sum, weights, broadcast(quad));
  }
};

/// BF16 panels through the hardware's dot product, pair after pair.
struct DotProductMicro {
  static constexpr int kSums = 16;

  template <int kRows, int kPanelBlock>
  static void block(const PanelProduct<BFloat16, BFloat16>& p, int64_t row, int64_t panel) {
    __m512 sums[kRows][kPanelBlock];
    float* const c = p.c + row * p.c_stride + panel * kPanelWidth;
    for (int r = 0; r < kRows; ++r) {
      for (int j = 0; j < kPanelBlock; ++j) {
        sums[r][j] =
            p.accumulate ? _mm512_loadu_ps(c + r * p.c_stride + j * kPanelWidth) : _mm512_setzero_ps();
      }
    }
    const BFloat16* const a = p.a + row * p.a_stride;
    const BFloat16* const weights = p.panels + panel * p.panel_stride;
    for (int64_t k = 0; k < p.k; k += 2) {
      __m512bh activations[kRows];
      for (int r = 0; r < kRows; ++r) {
        int32_t pair;
        __builtin_memcpy(&pair, a + r * p.a_stride + k, sizeof pair);
        activations[r] = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
      }
      for (int j = 0; j < kPanelBlock; ++j) {
        const __m512i w = _mm512_loadu_si512(weights + j * p.panel_stride + k * kPanelWidth);
        for (int r = 0; r < kRows; ++r) {
          sums[r][j] = _mm512_dpbf16_ps(sums[r][j], activations[r], reinterpret_cast<__m512bh>(w));
        }
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (int j = 0; j < kPanelBlock; ++j)
        _mm512_storeu_ps(c + r * p.c_stride + j * kPanelWidth, sums[r][j]);
    }
  }
};

void panels_bf16(const PanelProduct<BFloat16, BFloat16>& product) {
  generic::for_each_block<DotProductMicro>(product);
}

}  // namespace

const KernelTable& vnni_bf16_table() {
  static const KernelTable kernels = [] {
    KernelTable t = table();
    t.name = "avx512 (vnni, bf16)";
    t.panels_bf16 = panels_bf16;
    t.panels_mxfp4_w4a8 = generic::panels_mxfp4_w4a8<F32x16, VnniDot>;
    return t;
  }();
  return kernels;
}

}  // namespace verbatim::avx512
