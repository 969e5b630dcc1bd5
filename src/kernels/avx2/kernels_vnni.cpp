#include "kernels/avx2/dot.h"
#include "kernels/generic/blocks.h"
#include "kernels/generic/code_product.h"
#include "kernels/generic/halves_product.h"
#include "kernels/generic/integer.h"
#include "kernels/isa_tables.h"

namespace verbatim::avx2 {

namespace {

/// Dot products by AVX-VNNI. Sums have 32 bits, so open() and close() do nothing. Signed weights become
/// unsigned by adding 128.
struct VnniDot : DotBase {
  using Partial = Sum;
  static constexpr int32_t kInt8Offset = 128;
  static constexpr int kCodeStreams = 2;
  static constexpr int kCodeSums = 6;
  static constexpr bool kWholeBytes = true;

  VERBATIM_INLINE static Bytes int8(const uint8_t* codes) {
    const Bytes bytes = load(codes);
    const __m256i offset = _mm256_set1_epi8(static_cast<char>(0x80));
    return {_mm256_xor_si256(bytes.first, offset), _mm256_xor_si256(bytes.second, offset)};
  }
  /// Merges two planes of codes: computes 16 · upper + lower for the low and for the high nibbles.
  VERBATIM_INLINE static void merge(const Bytes& upper, const Bytes& lower, Bytes* low, Bytes* high) {
    const __m256i mask = _mm256_set1_epi8(15);
    const auto merged = [&](__m256i first, __m256i second) {
      return _mm256_or_si256(_mm256_and_si256(mask, first), _mm256_andnot_si256(mask, second));
    };
    *low = {merged(lower.first, _mm256_slli_epi16(upper.first, 4)),
            merged(lower.second, _mm256_slli_epi16(upper.second, 4))};
    *high = {merged(_mm256_srli_epi16(lower.first, 4), upper.first),
             merged(_mm256_srli_epi16(lower.second, 4), upper.second)};
  }
  VERBATIM_INLINE static Bytes shift_bytes(const Bytes& bytes, const Sum& shifts) {
    return {_mm256_sllv_epi32(bytes.first, shifts.first), _mm256_sllv_epi32(bytes.second, shifts.second)};
  }
  VERBATIM_INLINE static Sum negative_offsets(const uint8_t* first, const uint8_t* second) {
    const __m256i offset = _mm256_set1_epi32(kE2m1Offset);
    const Sum lower = unsigned_bytes(first);
    const Sum upper = unsigned_bytes(second);
    const auto pairs = [&](__m256i a, __m256i b) {
      const __m256i words =
          _mm256_or_si256(_mm256_sllv_epi32(offset, a), _mm256_slli_epi32(_mm256_sllv_epi32(offset, b), 16));
      return _mm256_sub_epi16(_mm256_setzero_si256(), words);
    };
    return {pairs(lower.first, upper.first), pairs(lower.second, upper.second)};
  }
  VERBATIM_INLINE static Sum add_words(const Sum& sum, const Sum& words, const int16_t* pair) {
    const __m256i both = broadcast(reinterpret_cast<const int8_t*>(pair));
    return {_mm256_dpwssd_avx_epi32(sum.first, words.first, both),
            _mm256_dpwssd_avx_epi32(sum.second, words.second, both)};
  }
  VERBATIM_INLINE static Partial open(const Sum& sum) { return sum; }
  VERBATIM_INLINE static Sum close(const Sum&, const Partial& partial) { return partial; }
  VERBATIM_INLINE static Partial add(const Partial& sum, const Bytes& weights, const int8_t* quad) {
    const __m256i a = broadcast(quad);
    return {_mm256_dpbusd_avx_epi32(sum.first, weights.first, a),
            _mm256_dpbusd_avx_epi32(sum.second, weights.second, a)};
  }
  VERBATIM_INLINE static Partial add_int8(const Partial& sum, const Bytes& weights, const int8_t* quad) {
    return add(sum, weights, quad);
  }
};

}  // namespace

const KernelTable& vnni_table() {
  static const KernelTable kernels = [] {
    KernelTable t = table();
    t.name = "avx2 (vnni)";
    generic::fill_integer<F32x16, VnniDot>(t.integer_product);
    generic::fill_blocks<F32x16, VnniDot>(t);
    t.halves_product = generic::halves_product<F32x16, VnniDot>;
    generic::fill_code_product<VnniDot>(t.code_product);
    return t;
  }();
  return kernels;
}

}  // namespace verbatim::avx2
