#include "kernels/generic/code_product.h"
#include "kernels/generic/panel_loop.h"
#include "kernels/generic/panels_float.h"
#include "kernels/isa_tables.h"
#include "kernels/neon/dot.h"

namespace verbatim::neon {

namespace {

/// Dot products of unsigned with signed bytes, for codes of quantized keys and values up to 255.
struct MixedDotProducts : Dot {
  static constexpr bool kWholeBytes = true;

  /// Merges two planes of codes: computes 16 · upper + lower for the low and for the high nibbles.
  VERBATIM_INLINE static void merge(const Bytes& upper, const Bytes& lower, Bytes* low, Bytes* high) {
    for (int i = 0; i < 4; ++i) {
      low->part[i] = vsliq_n_u8(lower.part[i], upper.part[i], 4);
      high->part[i] = vsriq_n_u8(upper.part[i], lower.part[i], 4);
    }
  }
  VERBATIM_INLINE static Partial add(Partial sum, const Bytes& weights, const int8_t* quad) {
    const int8x16_t a = broadcast(quad);
    for (int i = 0; i < 4; ++i) sum.part[i] = vusdotq_s32(sum.part[i], weights.part[i], a);
    return sum;
  }
};

/// Adds the products of the even, then of the odd BF16 numbers of each pair. Each is a multiply-add that is
/// rounded once to the nearest, as the portable rounding has it; the instructions for dot products and
/// matrices of BF16 (`bfdot`, `bfmmla`) round in their own way.
VERBATIM_INLINE float32x4_t add_pair(float32x4_t sum, bfloat16x8_t a, bfloat16x8_t weights) {
  return vbfmlaltq_f32(vbfmlalbq_f32(sum, a, weights), a, weights);
}

/// The product with panels in BF16 without widening them, pair after pair.
struct PairsAdding {
  using Sum = F32x16;
  static constexpr int kSums = F32x16::kSums;

  template <int kRows, int kPanelBlock>
  VERBATIM_INLINE static void add(F32x16 (&sums)[kRows][kPanelBlock], const BFloat16* a,
                                  const BFloat16* weights, int64_t inputs,
                                  const PanelProduct<BFloat16, BFloat16>& p) {
    for (int64_t k = 0; k < inputs; k += 2) {
      bfloat16x8_t activations[kRows];
      for (int r = 0; r < kRows; ++r) {
        uint32_t pair;
        __builtin_memcpy(&pair, a + r * p.a_stride + k, sizeof pair);
        activations[r] = vreinterpretq_bf16_u32(vdupq_n_u32(pair));
      }
      for (int j = 0; j < kPanelBlock; ++j) {
        const BFloat16* const from = weights + j * p.panel_stride + k * kPanelWidth;
        for (int i = 0; i < 4; ++i) {
          const bfloat16x8_t w = vreinterpretq_bf16_u16(F32x16::words(from, i));
          for (int r = 0; r < kRows; ++r) {
            sums[r][j].part[i] = add_pair(sums[r][j].part[i], activations[r], w);
          }
        }
      }
    }
  }
};

void panels_bf16(const PanelProduct<BFloat16, BFloat16>& product) {
  generic::for_each_block<generic::SumsMicro<PairsAdding>>(product);
}

void scaled_panels(const ScaledPanelProduct<BFloat16>& product) {
  generic::scaled_blocks<PairsAdding>(product);
}

int64_t multiply_registers(int64_t steps, float* out) {
  constexpr int kSums = 6;
  uint16_t half = 0x3f00;
  __asm__("" : "+m"(half));  // or the compiler finds what the sums come to
  const bfloat16x8_t halves = vreinterpretq_bf16_u16(vdupq_n_u16(half));
  F32x16 sums[kSums];
  for (F32x16& sum : sums) sum = F32x16::set(1.0f);
  for (int64_t step = 0; step < steps; ++step) {
    for (F32x16& sum : sums) {
      for (float32x4_t& part : sum.part) part = add_pair(part, halves, halves);
    }
  }
  for (int i = 1; i < kSums; ++i) sums[0] = sums[0] + sums[i];
  sums[0].store(out);
  return steps * kSums * 16 * 4;
}

}  // namespace

const KernelTable& bf16_i8mm_table() {
  static const KernelTable kernels = [] {
    KernelTable t = dotprod_table();
    t.name = "neon (dotprod, bf16, i8mm)";
    t.panels_bf16 = panels_bf16;
    t.scaled_panels = scaled_panels;
    t.fused_product = nullptr;
    generic::fill_code_product<MixedDotProducts>(t.code_product);
    t.multiply_registers = multiply_registers;
    return t;
  }();
  return kernels;
}

}  // namespace verbatim::neon
