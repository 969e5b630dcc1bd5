#include "kernels/avx2/dot.h"
#include "kernels/avx2/words.h"
#include "kernels/generic/table.h"
#include "kernels/isa_tables.h"

namespace verbatim::avx2 {

namespace {

/// Dot products by vpmaddubsw: its 16-bit results are added up before they are widened, over as many quads as
/// fit (IntegerDots, BlockByteRows).
struct Dot : DotBase {
  using Partial = Bytes;
  static constexpr int32_t kInt8Offset = 0;
  static constexpr int kCodeStreams = 2;
  static constexpr int kCodeSums = 4;
  static constexpr bool kWholeBytes = false;
  static constexpr bool kMultipliesWords = true;

  VERBATIM_INLINE static Bytes int8(const uint8_t* codes) { return load(codes); }
  VERBATIM_INLINE static Partial open(const Sum&) { return start(0); }
  VERBATIM_INLINE static Sum close(const Sum& sum, const Partial& partial) {
    const __m256i ones = _mm256_set1_epi16(1);
    return {_mm256_add_epi32(sum.first, _mm256_madd_epi16(partial.first, ones)),
            _mm256_add_epi32(sum.second, _mm256_madd_epi16(partial.second, ones))};
  }
  VERBATIM_INLINE static Partial add(const Partial& sum, const Bytes& weights, const int8_t* quad) {
    const __m256i a = broadcast(quad);
    return in_order({_mm256_add_epi16(sum.first, _mm256_maddubs_epi16(weights.first, a)),
                     _mm256_add_epi16(sum.second, _mm256_maddubs_epi16(weights.second, a))});
  }
  VERBATIM_INLINE static Sum add_words(const Sum& sum, const Bytes& words, const int16_t* pair) {
    int32_t two;
    __builtin_memcpy(&two, pair, sizeof two);
    const __m256i a = _mm256_set1_epi32(two);
    return in_order({_mm256_add_epi32(sum.first, _mm256_madd_epi16(words.first, a)),
                     _mm256_add_epi32(sum.second, _mm256_madd_epi16(words.second, a))});
  }
  VERBATIM_INLINE static Sum add_word_product(const Sum& sum, const Sum& a, const Sum& b) {
    return {_mm256_add_epi32(sum.first, _mm256_madd_epi16(a.first, b.first)),
            _mm256_add_epi32(sum.second, _mm256_madd_epi16(a.second, b.second))};
  }
  /// Keeps a sum where it is in the order of the source: otherwise the compiler reorders long sums of
  /// integers, and products that wait for that leave the registers.
  VERBATIM_INLINE static Sum in_order(Sum sum) {
    asm("" : "+x"(sum.first), "+x"(sum.second));
    return sum;
  }
  /// |w| · (a with the sign of w): 2 · 128 · 127 just fits.
  VERBATIM_INLINE static Partial add_int8(const Partial&, const Bytes& weights, const int8_t* quad) {
    const __m256i a = broadcast(quad);
    const auto dot = [&](__m256i w) {
      return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w));
    };
    return {dot(weights.first), dot(weights.second)};
  }
};

}  // namespace

const KernelTable& table() {
  static const KernelTable kernels = generic::make_table<F32x16, U16x32, Dot>("avx2");
  return kernels;
}

}  // namespace verbatim::avx2
