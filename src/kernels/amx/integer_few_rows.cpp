#include "kernels/amx/products.h"
#include "kernels/avx512/vnni_dot.h"
#include "kernels/generic/integer.h"

namespace verbatim::amx {

namespace {

/// With byte permutations: they choose from a table of 64 bytes by six bits, so that four equal quarters make
/// masks for the other nibble needless.
struct PermutingDot : avx512::VnniDot {
  VERBATIM_INLINE static Bytes look_up(__m128i table, Bytes codes) {
    return _mm512_permutexvar_epi8(codes, _mm512_broadcast_i32x4(table));
  }
  VERBATIM_INLINE static Bytes e2m1_low(Bytes codes) { return look_up(e2m1_table(), codes); }
  VERBATIM_INLINE static Bytes e2m1_high(Bytes codes) {
    return look_up(e2m1_table(), _mm512_srli_epi16(codes, 4));
  }
  VERBATIM_INLINE static Bytes bsfp_low(Bytes codes) { return look_up(bsfp_table(), codes); }
  VERBATIM_INLINE static Bytes bsfp_high(Bytes codes) {
    return look_up(bsfp_table(), _mm512_srli_epi16(codes, 4));
  }
};

}  // namespace

void few_rows_mxfp4(const Int8Rows& a, const IntegerPanels& weights, float* c, int64_t c_stride) {
  generic::integer_product_of_few_rows<avx512::F32x16, PermutingDot, kIntegerMxfp4>(a, weights, c, c_stride);
}

void few_rows_bsfp(const Int8Rows& a, const IntegerPanels& weights, float* c, int64_t c_stride) {
  generic::integer_product_of_few_rows<avx512::F32x16, PermutingDot, kIntegerBsfp>(a, weights, c, c_stride);
}

}  // namespace verbatim::amx
