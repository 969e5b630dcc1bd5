#include "kernels/avx512/mxfp4_codes.h"
#include "kernels/generic/table.h"
#include "kernels/isa_tables.h"

namespace verbatim::avx512 {

namespace {

struct Dot : DotBase {
  VERBATIM_INLINE static Sum add(Sum sum, __m512i weights, const int8_t* quad) {
    const __m512i pairs = _mm512_maddubs_epi16(weights, broadcast(quad));
    return _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
  }
};

void unpack_mxfp4(const uint8_t* codes, const uint8_t* scales, int64_t group_count, BFloat16* out) {
  // The values of E2M1 in BF16, twice over: the index has five bits.
  alignas(64) static constexpr uint16_t kValues[32] = {
      0x0000, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040, 0x4080, 0x40c0, 0x8000, 0xbf00, 0xbf80,
      0xbfc0, 0xc000, 0xc040, 0xc080, 0xc0c0, 0x0000, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040,
      0x4080, 0x40c0, 0x8000, 0xbf00, 0xbf80, 0xbfc0, 0xc000, 0xc040, 0xc080, 0xc0c0};
  const __m512i values = _mm512_load_si512(kValues);
  const __m512i first_pair =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1));
  const __m512i second_pair =
      _mm512_broadcast_i32x4(_mm_setr_epi8(2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15, -1));
  const __m512i mask = _mm512_set1_epi8(15);
  for (int64_t g = 0; g < group_count; ++g) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(scales + g * 16));
    const __m512i lanes =
        _mm512_slli_epi32(_mm512_sub_epi32(_mm512_cvtepu8_epi32(bytes), _mm512_set1_epi32(127)), 7);
    const __m512i exponents = _mm512_mask_blend_epi16(0xaaaaaaaau, lanes, _mm512_slli_epi32(lanes, 16));
    const auto store = [&](__m512i indices, BFloat16* to) {
      const __m512i value = _mm512_permutexvar_epi16(indices, values);
      const __mmask32 nonzero = _mm512_test_epi16_mask(indices, _mm512_set1_epi16(7));
      _mm512_storeu_si512(to, _mm512_mask_add_epi16(value, nonzero, value, exponents));
    };
    for (int block = 0; block < 4; ++block) {
      const __m512i packed = _mm512_loadu_si512(codes + (g * 4 + block) * 64);
      const __m512i low = _mm512_and_si512(packed, mask);
      const __m512i high = _mm512_and_si512(_mm512_srli_epi16(packed, 4), mask);
      BFloat16* const pairs = out + (g * 16 + block * 4) * 32;
      store(_mm512_shuffle_epi8(low, first_pair), pairs);
      store(_mm512_shuffle_epi8(low, second_pair), pairs + 32);
      store(_mm512_shuffle_epi8(high, first_pair), pairs + 64);
      store(_mm512_shuffle_epi8(high, second_pair), pairs + 96);
    }
  }
}

}  // namespace

const KernelTable& table() {
  static const KernelTable kernels = generic::make_table<F32x16, Dot>("avx512", unpack_mxfp4);
  return kernels;
}

}  // namespace verbatim::avx512
