#pragma once

#include "kernels/generic/tiles.h"

namespace verbatim::generic {

/// The product of a few rows with tiles of a reading, each of which is unpacked while the one before it is
/// multiplied: a processor does the shuffles of one and the multiplications of the other at a time if it
/// finds them close together. The bits are those of panels_bf16() for unpacked panels.
template <typename V, typename Tile, bool kEscaped>
class FusedProduct {
 public:
  explicit FusedProduct(const TileProduct& p) : p_(p), tiles_(p.weights.tiles) {}

  void run() const {
    static_assert(kMostFusedRows == 8);
    switch (p_.rows) {
      case 2:
        return all_panels<2>();
      case 3:
        return all_panels<3>();
      case 4:
        return all_panels<4>();
      case 5:
        return all_panels<5>();
      case 6:
        return all_panels<6>();
      case 7:
        return all_panels<7>();
      default:
        return all_panels<8>();
    }
  }

 private:
  /// The number of rows, of kRows in all, whose sums are in registers together.
  template <int kRows>
  static constexpr int kTogether = V::kSums >= 8 || kRows <= 5 ? kRows : 4;

  /// The tile that is being unpacked, part after part.
  struct Unpacking {
    TilePlace at;
    uint64_t escaped;   ///< the index of the entry of the next escaped weight
    bool done = false;  ///< the last tile of all is unpacked once more, and not used
  };

  /// Goes on to the tile behind one.
  VERBATIM_INLINE void advance(Unpacking& next) const {
    if (next.at.tile + 1 < tiles_) {
      ++next.at.tile;
    } else {
      next.done = next.at.panel + 1 == p_.first_panel + p_.panel_count;
      if (next.done) return;
      ++next.at.panel;
      next.at.tile = 0;
      if constexpr (kEscaped) next.escaped = p_.weights.escaped.starts[next.at.panel];
    }
    ++next.at.index;
  }

  template <int kHalf>
  VERBATIM_INLINE void put_escaped(Unpacking& next, uint16_t* out) const {
    if constexpr (kEscaped) {
      const int64_t half = 2 * next.at.index + kHalf;
      if (next.done || p_.weights.escaped.counts[half] == 0) return;
      apply_escaped_weights(p_.weights.escaped, half, &next.escaped, out + kHalf * kTileWords / 2);
    }
  }

  /// Adds the products of kRows rows with a quarter of a tile, eight inputs, to sums that wait in memory,
  /// [kRows][16].
  template <int kRows>
  VERBATIM_INLINE static void multiply(const uint16_t* words, const float* a, float* waiting) {
    V sums[kRows];
    for (int r = 0; r < kRows; ++r) sums[r] = V::load(waiting + r * kPanelWidth);
#pragma GCC unroll 4
    for (int pair = 0; pair < 4; ++pair) {
      V even;
      V odd;
      V::load_pairs(reinterpret_cast<const BFloat16*>(words) + pair * kBlockWords, &even, &odd);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        sums[r] = fma_of_bf16(V::set(a[r * kInnerStep + 2 * pair]), even, sums[r]);
      }
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        sums[r] = fma_of_bf16(V::set(a[r * kInnerStep + 2 * pair + 1]), odd, sums[r]);
      }
    }
    for (int r = 0; r < kRows; ++r) sums[r].store(waiting + r * kPanelWidth);
  }

  /// A tile that is multiplied, and where the next one goes.
  struct Step {
    const uint16_t* words;
    const float* a;  ///< [rows][32]
    float* waiting;  ///< [rows][16]
    uint16_t* out;
  };

  /// Multiplies a quarter of a tile with kRows rows, and unpacks that of the next tile between them. Escaped
  /// weights of a half are put in place half a tile before it is multiplied: words that were just written
  /// over in part cannot be loaded until the writes are done.
  template <int kPart, int kRows, typename Prepared>
  VERBATIM_INLINE void part(const Step& step, const Prepared& prepared, Unpacking& next) const {
    constexpr int kFirst = kTogether<kRows>;
    const uint16_t* const quarter = step.words + 4 * kPart * kBlockWords;
    const float* const a = step.a + 8 * kPart;
    multiply<kFirst>(quarter, a, step.waiting);
    const auto store = [&]<int kPair>(const auto& words) __attribute__((always_inline)) {
      words.store(step.out + kPair * kBlockWords);
    };
    Tile::template visit_part<kPart>(prepared, store);
    if constexpr (kPart % 2 == 1) put_escaped<kPart / 2>(next, step.out);
    if constexpr (kRows > kFirst) {
      multiply<kRows - kFirst>(quarter, a + kFirst * kInnerStep, step.waiting + kFirst * kPanelWidth);
    }
  }

  template <int kRows>
  void all_panels() const {
    alignas(64) uint16_t unpacked[2][kTileWords];
    alignas(64) float waiting[kRows * kPanelWidth];
    Unpacking next{{p_.first_panel, 0, p_.first_panel * tiles_}, 0};
    if constexpr (kEscaped) next.escaped = p_.weights.escaped.starts[p_.first_panel];
    Tile::unpack(p_.weights, next.at, unpacked[0]);
    put_escaped<0>(next, unpacked[0]);
    put_escaped<1>(next, unpacked[0]);
    int parity = 0;
    for (int64_t panel = 0; panel < p_.panel_count; ++panel) {
      for (float& sum : waiting) sum = 0.0f;
      for (int64_t tile = 0; tile < tiles_; ++tile, parity ^= 1) {
        advance(next);
        Tile::prefetch(p_.weights, next.at.index + kPrefetchTiles);
        const auto prepared = Tile::prepare(p_.weights, next.at);
        const Step step{unpacked[parity], p_.widened + tile * kRows * kInnerStep, waiting,
                        unpacked[parity ^ 1]};
        part<0, kRows>(step, prepared, next);
        part<1, kRows>(step, prepared, next);
        part<2, kRows>(step, prepared, next);
        part<3, kRows>(step, prepared, next);
      }
      for (int64_t r = 0; r < kRows; ++r) {
        V::load(waiting + r * kPanelWidth).store(p_.c + r * p_.c_stride + panel * kPanelWidth);
      }
    }
  }

  const TileProduct p_;
  const int64_t tiles_;
};

/// KernelTable::fused_product for a vector of floats and the words of tiles.
template <typename V, typename W>
void fused_product(const TileProduct& p) {
  switch (p.reading) {
    case kTileMxfp4:
      return FusedProduct<V, Mxfp4Tile<W>, false>(p).run();
    case kTileBsfpFull:
      return FusedProduct<V, BsfpFullTile<W>, true>(p).run();
    case kTileMxbf16Full:
      return FusedProduct<V, Mxbf16FullTile<W>, true>(p).run();
    default:
      break;  // never asked for
  }
}

}  // namespace verbatim::generic
