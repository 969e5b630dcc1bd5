#pragma once

#include <immintrin.h>

#include "kernels/generic/tiles.h"

namespace verbatim::amx {

/// Puts escaped weights in place, tile after tile. Those of a tile are read while the tile before is
/// unpacked: places and values go from vectors through memory to scalar stores, which would otherwise wait
/// for all arithmetic before them.
///
/// A loop over the entries of a tile would end unpredictably, and a wrong branch prediction costs some twenty
/// cycles. So there are always kUsual stores, of which surplus ones go to a spare place.
class EscapedWeightReader {
 public:
  static constexpr int64_t kSpareWords = 32;

  EscapedWeightReader() = default;
  /// Begins at the tile with this index, whose entries begin at `entry`.
  EscapedWeightReader(const EscapedWeights& lists, int64_t index, uint64_t entry) : entry_(entry) {
    read(lists, index);
  }

  /// Reads the entries of the tile with this index, which must follow the last one.
  VERBATIM_INLINE void read(const EscapedWeights& lists, int64_t index) {
    entry_ += listed_;
    index_ = index;
    const uint32_t first = lists.counts[2 * index];
    const uint32_t second = lists.counts[2 * index + 1];
    count_ = first + second;
    listed_ = generic::listed_escaped(first) + generic::listed_escaped(second);
    if (count_ == 0 || count_ > kUsual) return;
    const __mmask16 there = static_cast<__mmask16>((1u << count_) - 1);
    const __mmask16 in_second_half = static_cast<__mmask16>(0xffffu << first);
    const __m256i values = _mm256_maskz_loadu_epi16(there, lists.values + entry_);
    const __m256i positions = _mm256_cvtepu8_epi16(_mm_maskz_loadu_epi8(there, lists.positions + entry_));
    const __m256i places = _mm256_mask_add_epi16(positions, in_second_half, positions,
                                                 _mm256_set1_epi16(generic::kTileWords / 2));
    _mm256_store_si256(reinterpret_cast<__m256i*>(places_),
                       _mm256_mask_mov_epi16(_mm256_set1_epi16(generic::kTileWords), there, places));
    _mm256_store_si256(reinterpret_cast<__m256i*>(values_), values);
  }

  /// Writes the escaped weights that were read last into the tile at `out`. The kSpareWords words after the
  /// tile are overwritten with arbitrary values.
  VERBATIM_INLINE void write(const EscapedWeights& lists, uint16_t* out) const {
    if (count_ == 0) return;
    if (count_ > kUsual) {
      uint64_t next = entry_;
      generic::apply_tile_escaped_weights(lists, index_, &next, out);
      return;
    }
    for (uint32_t i = 0; i < kUsual; ++i) out[places_[i]] = values_[i];
  }

 private:
  static constexpr uint32_t kUsual = 16;

  alignas(32) uint16_t places_[kUsual];
  alignas(32) uint16_t values_[kUsual];
  int64_t index_ = 0;
  uint64_t entry_ = 0;   // the first of the tile
  uint32_t count_ = 0;   // of both halves, as they are noted
  uint32_t listed_ = 0;  // entries of the tile
};

}  // namespace verbatim::amx
