#include "kernels/avx512/register_product.h"
#include "kernels/avx512/vector.h"
#include "kernels/avx512/vnni_dot.h"
#include "kernels/generic/blocks.h"
#include "kernels/generic/code_product.h"
#include "kernels/generic/elementwise.h"
#include "kernels/generic/halves_product.h"
#include "kernels/generic/integer.h"
#include "kernels/generic/panels_float.h"
#include "kernels/isa_tables.h"

namespace verbatim::avx512 {

namespace {

/// Adds products with panels in BF16 by the hardware's dot product, pair after pair.
struct DotProductAdding {
  using Sum = F32x16;
  static constexpr int kSums = 16;

  template <int kRows, int kPanelBlock>
  VERBATIM_INLINE static void add(F32x16 (&sums)[kRows][kPanelBlock], const BFloat16* a,
                                  const BFloat16* weights, int64_t inputs,
                                  const PanelProduct<BFloat16, BFloat16>& p) {
    for (int64_t k = 0; k < inputs; k += 2) {
      __m512bh activations[kRows];
      for (int r = 0; r < kRows; ++r) {
        int32_t pair;
        __builtin_memcpy(&pair, a + r * p.a_stride + k, sizeof pair);
        activations[r] = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
      }
      for (int j = 0; j < kPanelBlock; ++j) {
        const __m512i w = _mm512_loadu_si512(weights + j * p.panel_stride + k * kPanelWidth);
        for (int r = 0; r < kRows; ++r) {
          sums[r][j] = {_mm512_dpbf16_ps(sums[r][j].lanes, activations[r], reinterpret_cast<__m512bh>(w))};
        }
      }
    }
  }
};

void panels_bf16(const PanelProduct<BFloat16, BFloat16>& product) {
  generic::for_each_block<generic::SumsMicro<DotProductAdding>>(product);
}

void scaled_panels(const ScaledPanelProduct<BFloat16>& product) {
  generic::scaled_blocks<DotProductAdding>(product);
}

/// Rounds to BF16 by the hardware's instruction, with the bits of generic::PlainRounding for the numbers that
/// it is used for.
struct ProcessorRounding {
  VERBATIM_INLINE static F32x16 store(F32x16 value, BFloat16* to) {
    const __m256i bits = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value.lanes));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bits);
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
  }
};

int64_t multiply_registers(int64_t steps, float* out) {
  constexpr int kSums = 12;  // more than the latency of a dot product times those begun per cycle
  const __m512bh ones = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3f80));
  __m512 sums[kSums];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  for (int64_t step = 0; step < steps; ++step) {
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, ones, ones);
  }
  for (int i = 1; i < kSums; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  _mm512_storeu_ps(out, sums[0]);
  return steps * kSums * 16 * 4;
}

}  // namespace

const KernelTable& vnni_bf16_table() {
  static const KernelTable kernels = [] {
    KernelTable t = table();
    t.name = "avx512 (vnni, bf16)";
    t.rounding = "bf16 dot products";
    t.panels_bf16 = panels_bf16;
    t.scaled_panels = scaled_panels;
    t.register_product = register_product;
    t.fused_product = nullptr;
    generic::fill_integer<F32x16, VnniDot>(t.integer_product);
    generic::fill_blocks<F32x16, VnniDot>(t);
    t.halves_product = nullptr;
    generic::fill_code_product<VnniDot>(t.code_product);
    t.softmax_chunk = generic::softmax_chunk<F32x16, ProcessorRounding>;
    t.multiply_registers = multiply_registers;
    return t;
  }();
  return kernels;
}

const KernelTable& portable_vnni_bf16_table() {
  static const KernelTable kernels = [] {
    KernelTable t = vnni_bf16_table();
    t.name = "avx512 (vnni, bf16), portable";
    t.rounding = kPortableRounding;
    t.panels_bf16 = table().panels_bf16;
    t.scaled_panels = table().scaled_panels;
    t.register_product = nullptr;
    t.halves_product = generic::halves_product<F32x16, VnniDot>;
    t.fused_product = table().fused_product;
    t.multiply_registers = table().multiply_registers;
    return t;
  }();
  return kernels;
}

}  // namespace verbatim::avx512
