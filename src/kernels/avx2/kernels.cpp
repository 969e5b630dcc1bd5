#include "kernels/avx2/vector.h"
#include "kernels/generic/table.h"
#include "kernels/isa_tables.h"

namespace verbatim::avx2 {

namespace {

/// Weights as unsigned bytes, twice the E2M1 value plus kOffset: vpmaddubsw wants one unsigned operand, and
/// its 16-bit sums of two products stay below 2 · 24 · 127.
struct Dot {
  struct Bytes {
    __m256i first;
    __m256i second;
  };
  using Sum = Bytes;
  static constexpr int32_t kOffset = 12;

  VERBATIM_INLINE static Sum zero() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  VERBATIM_INLINE static Bytes load(const uint8_t* codes) {
    const __m256i* const blocks = reinterpret_cast<const __m256i*>(codes);
    return {_mm256_loadu_si256(blocks), _mm256_loadu_si256(blocks + 1)};
  }
  VERBATIM_INLINE static __m256i look_up(__m256i codes) {
    const __m256i table =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
    return _mm256_shuffle_epi8(table, _mm256_and_si256(codes, _mm256_set1_epi8(15)));
  }
  VERBATIM_INLINE static Bytes low(const Bytes& codes) {
    return {look_up(codes.first), look_up(codes.second)};
  }
  VERBATIM_INLINE static Bytes high(const Bytes& codes) {
    return {look_up(_mm256_srli_epi16(codes.first, 4)), look_up(_mm256_srli_epi16(codes.second, 4))};
  }
  VERBATIM_INLINE static __m256i dot(__m256i sum, __m256i weights, __m256i activations) {
    const __m256i pairs = _mm256_maddubs_epi16(weights, activations);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
  VERBATIM_INLINE static Sum add(const Sum& sum, const Bytes& weights, const int8_t* quad) {
    int32_t four;
    __builtin_memcpy(&four, quad, sizeof four);
    const __m256i activations = _mm256_set1_epi32(four);
    return {dot(sum.first, weights.first, activations), dot(sum.second, weights.second, activations)};
  }
  VERBATIM_INLINE static Sum subtract(const Sum& sum, int32_t value) {
    const __m256i all = _mm256_set1_epi32(value);
    return {_mm256_sub_epi32(sum.first, all), _mm256_sub_epi32(sum.second, all)};
  }
  VERBATIM_INLINE static F32x16 to_float(const Sum& sum) {
    return {_mm256_cvtepi32_ps(sum.first), _mm256_cvtepi32_ps(sum.second)};
  }
};

/// Sixteen bytes of codes in the low halves of 16-bit lanes to BF16 under the lanes' exponents.
VERBATIM_INLINE void store_weights(__m256i codes, __m256i exponents, BFloat16* out) {
  // The upper and the lower byte of each E2M1 value in BF16; the sign sits in the upper.
  const __m256i upper = _mm256_broadcastsi128_si256(_mm_setr_epi8(
      0, 0x3f, 0x3f, 0x3f, 0x40, 0x40, 0x40, 0x40, static_cast<char>(0x80), static_cast<char>(0xbf),
      static_cast<char>(0xbf), static_cast<char>(0xbf), static_cast<char>(0xc0), static_cast<char>(0xc0),
      static_cast<char>(0xc0), static_cast<char>(0xc0)));
  const __m256i lower = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 0, static_cast<char>(0x80), static_cast<char>(0xc0), 0, 0x40, static_cast<char>(0x80),
                    static_cast<char>(0xc0), 0, 0, static_cast<char>(0x80), static_cast<char>(0xc0), 0, 0x40,
                    static_cast<char>(0x80), static_cast<char>(0xc0)));
  const __m256i mask = _mm256_set1_epi16(0xff);
  const __m256i high_byte = _mm256_slli_epi16(_mm256_shuffle_epi8(upper, codes), 8);
  const __m256i value = _mm256_or_si256(high_byte, _mm256_and_si256(_mm256_shuffle_epi8(lower, codes), mask));
  const __m256i magnitude = _mm256_and_si256(codes, _mm256_set1_epi16(7));
  const __m256i is_zero = _mm256_cmpeq_epi16(magnitude, _mm256_setzero_si256());
  const __m256i scaled = _mm256_add_epi16(value, _mm256_andnot_si256(is_zero, exponents));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), scaled);
}

void unpack_mxfp4(const uint8_t* codes, const uint8_t* scales, int64_t group_count, BFloat16* out) {
  // Bytes 0, 1 (or 2, 3) of each 32-bit lane, one to a 16-bit lane.
  const __m256i first_pair = _mm256_setr_epi8(0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1,  //
                                              0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1);
  const __m256i second_pair = _mm256_add_epi8(first_pair, _mm256_set1_epi16(2));
  const __m256i mask = _mm256_set1_epi8(15);
  for (int64_t g = 0; g < group_count; ++g) {
    for (int half = 0; half < 2; ++half) {  // columns 0..7 and 8..15
      const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(scales + g * 16 + half * 8));
      const __m256i lanes =
          _mm256_slli_epi32(_mm256_sub_epi32(_mm256_cvtepu8_epi32(bytes), _mm256_set1_epi32(127)), 7);
      const __m256i exponents =
          _mm256_or_si256(_mm256_and_si256(lanes, _mm256_set1_epi32(0xffff)), _mm256_slli_epi32(lanes, 16));
      for (int block = 0; block < 4; ++block) {
        const __m256i packed =
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + (g * 4 + block) * 64 + half * 32));
        const __m256i low = _mm256_and_si256(packed, mask);
        const __m256i high = _mm256_and_si256(_mm256_srli_epi16(packed, 4), mask);
        BFloat16* const pairs = out + (g * 16 + block * 4) * 32 + half * 16;
        store_weights(_mm256_shuffle_epi8(low, first_pair), exponents, pairs);
        store_weights(_mm256_shuffle_epi8(low, second_pair), exponents, pairs + 32);
        store_weights(_mm256_shuffle_epi8(high, first_pair), exponents, pairs + 64);
        store_weights(_mm256_shuffle_epi8(high, second_pair), exponents, pairs + 96);
      }
    }
  }
}

}  // namespace

const KernelTable& table() {
  static const KernelTable kernels = generic::make_table<F32x16, Dot>("avx2", unpack_mxfp4);
  return kernels;
}

}  // namespace verbatim::avx2
