#include "kernels/avx512/dot.h"
#include "kernels/avx512/words.h"
#include "kernels/generic/table.h"
#include "kernels/isa_tables.h"

namespace verbatim::avx512 {

namespace {

/// As on AVX2: products of bytes are added up in 16 bits over as many quads as fit.
struct Dot : DotBase {
  using Partial = __m512i;
  static constexpr int32_t kInt8Offset = 0;
  static constexpr int kCodeStreams = 2;
  static constexpr int kCodeSums = 16;
  static constexpr bool kWholeBytes = false;
  static constexpr bool kMultipliesWords = true;

  VERBATIM_INLINE static Bytes int8(const uint8_t* codes) { return load(codes); }
  VERBATIM_INLINE static Partial open(Sum) { return start(0); }
  VERBATIM_INLINE static Sum close(Sum sum, Partial partial) {
    return _mm512_add_epi32(sum, _mm512_madd_epi16(partial, _mm512_set1_epi16(1)));
  }
  VERBATIM_INLINE static Partial add(Partial sum, Bytes weights, const int8_t* quad) {
    return _mm512_add_epi16(sum, _mm512_maddubs_epi16(weights, broadcast(quad)));
  }
  VERBATIM_INLINE static Sum add_words(Sum sum, Bytes words, const int16_t* pair) {
    int32_t two;
    __builtin_memcpy(&two, pair, sizeof two);
    Sum added = _mm512_add_epi32(sum, _mm512_madd_epi16(words, _mm512_set1_epi32(two)));
    // Otherwise the compiler reorders long sums of integers, and products that wait for it leave the
    // registers.
    asm("" : "+v"(added));
    return added;
  }
  VERBATIM_INLINE static Sum add_word_product(Sum sum, Sum a, Sum b) {
    return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
  }
  VERBATIM_INLINE static Partial add_int8(Partial, Bytes weights, const int8_t* quad) {
    const __m512i a = broadcast(quad);
    const __m512i signed_a = _mm512_mask_sub_epi8(a, _mm512_movepi8_mask(weights), start(0), a);
    return _mm512_maddubs_epi16(_mm512_abs_epi8(weights), signed_a);
  }
};

}  // namespace

const KernelTable& table() {
  static const KernelTable kernels = generic::make_table<F32x16, U16x32, Dot>("avx512");
  return kernels;
}

}  // namespace verbatim::avx512
