#include "kernels/generic/blocks.h"
#include "kernels/generic/code_product.h"
#include "kernels/generic/halves_product.h"
#include "kernels/generic/integer.h"
#include "kernels/isa_tables.h"
#include "kernels/neon/dot.h"

namespace verbatim::neon {

namespace {

/// The parts of an integer product with the instruction for dot products of signed bytes.
struct DotProducts : Dot {
  VERBATIM_INLINE static Partial add(Partial sum, const Bytes& weights, const int8_t* quad) {
    const int8x16_t a = broadcast(quad);
    for (int i = 0; i < 4; ++i) {
      sum.part[i] = vdotq_s32(sum.part[i], vreinterpretq_s8_u8(weights.part[i]), a);
    }
    return sum;
  }
  VERBATIM_INLINE static Partial add_int8(const Partial& sum, const Bytes& weights, const int8_t* quad) {
    return add(sum, weights, quad);
  }
};

}  // namespace

const KernelTable& dotprod_table() {
  static const KernelTable kernels = [] {
    KernelTable t = table();
    t.name = "neon (dotprod)";
    generic::fill_integer<F32x16, DotProducts>(t.integer_product);
    generic::fill_blocks<F32x16, DotProducts>(t);
    t.halves_product = generic::halves_product<F32x16, DotProducts>;
    generic::fill_code_product<DotProducts>(t.code_product);
    return t;
  }();
  return kernels;
}

}  // namespace verbatim::neon
