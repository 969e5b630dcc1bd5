#pragma once

#include "kernels/generic/tiles.h"

namespace verbatim::generic {

/// The product of a few rows with tiles of a reading, each of which is unpacked while the one before it is
/// multiplied: a processor does the shuffles of one and the multiplications of the other at a time if it
/// finds them close together. What is added to a sum waits for what was added before it, so one row meets two
/// panels at a time. The bits are those of panels_bf16() for unpacked panels.
template <typename V, typename Tile, bool kEscaped>
class FusedProduct {
 public:
  explicit FusedProduct(const TileProduct& p) : p_(p), tiles_(p.weights.tiles) {}

  void run() const {
    static_assert(kMostFusedRows == 8);
    switch (p_.rows) {
      case 1:
        return one_row();
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
    bool done = false;  ///< the last tile of the last panels is unpacked once more, and not used
  };

  /// The first tile of a panel.
  VERBATIM_INLINE Unpacking first_of(int64_t panel) const {
    Unpacking next{{panel, 0, panel * tiles_}, 0};
    if constexpr (kEscaped) next.escaped = p_.weights.escaped.starts[panel];
    return next;
  }

  /// Goes on to the tile behind one, of the same panel or of that kPanels further on, before `end`.
  template <int kPanels>
  VERBATIM_INLINE void advance(Unpacking& next, int64_t end) const {
    if (next.at.tile + 1 < tiles_) {
      ++next.at.tile;
      ++next.at.index;
    } else if (next.at.panel + kPanels < end) {
      next = first_of(next.at.panel + kPanels);
    } else {
      next.done = true;
    }
  }

  template <int kHalf>
  VERBATIM_INLINE void put_escaped(Unpacking& next, uint16_t* out) const {
    if constexpr (kEscaped) {
      const int64_t half = 2 * next.at.index + kHalf;
      if (next.done || p_.weights.escaped.counts[half] == 0) return;
      apply_escaped_weights(p_.weights.escaped, half, &next.escaped, out + kHalf * kTileWords / 2);
    }
  }

  /// Adds the products of kRows rows with a quarter of a tile of each of kPanels panels, eight inputs, to
  /// sums that wait in memory, [kPanels][kRows][16]. Unpacked tiles of panels lie kPanelWords apart.
  template <int kRows, int kPanels>
  VERBATIM_INLINE static void multiply(const uint16_t* words, const float* a, float* waiting) {
    V sums[kPanels][kRows];
    for (int j = 0; j < kPanels; ++j) {
      for (int r = 0; r < kRows; ++r) sums[j][r] = V::load(waiting + (j * kRows + r) * kPanelWidth);
    }
#pragma GCC unroll 4
    for (int pair = 0; pair < 4; ++pair) {
#pragma GCC unroll 2
      for (int j = 0; j < kPanels; ++j) {
        V even;
        V odd;
        V::load_pairs(reinterpret_cast<const BFloat16*>(words) + j * kPanelWords + pair * kBlockWords, &even,
                      &odd);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          sums[j][r] = fma_of_bf16(V::set(a[r * kInnerStep + 2 * pair]), even, sums[j][r]);
        }
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          sums[j][r] = fma_of_bf16(V::set(a[r * kInnerStep + 2 * pair + 1]), odd, sums[j][r]);
        }
      }
    }
    for (int j = 0; j < kPanels; ++j) {
      for (int r = 0; r < kRows; ++r) sums[j][r].store(waiting + (j * kRows + r) * kPanelWidth);
    }
  }

  /// Two unpacked tiles of a panel take turns: one is multiplied, and the other is filled.
  static constexpr int64_t kPanelWords = 2 * kTileWords;

  /// Tiles that are multiplied, one of each panel, and where the next ones go.
  struct Step {
    const uint16_t* words;
    const float* a;  ///< [rows][32]
    float* waiting;  ///< [panels][rows][16]
    uint16_t* out;
  };

  /// Multiplies a quarter of a tile of each panel with kRows rows, and unpacks those of the next tiles
  /// meanwhile. Escaped weights of a half are put in place half a tile before it is multiplied: words that
  /// were just written over in part cannot be loaded until the writes are done.
  template <int kPart, int kRows, int kPanels, typename Prepared>
  VERBATIM_INLINE void part(const Step& step, const Prepared (&prepared)[kPanels],
                            Unpacking (&next)[kPanels]) const {
    constexpr int kFirst = kTogether<kRows>;
    static_assert(kPanels == 1 || kFirst == kRows);
    const uint16_t* const quarter = step.words + 4 * kPart * kBlockWords;
    const float* const a = step.a + 8 * kPart;
    multiply<kFirst, kPanels>(quarter, a, step.waiting);
#pragma GCC unroll 2
    for (int j = 0; j < kPanels; ++j) {
      uint16_t* const out = step.out + j * kPanelWords;
      const auto store = [&]<int kPair>(const auto& words) __attribute__((always_inline)) {
        words.store(out + kPair * kBlockWords);
      };
      Tile::template visit_part<kPart>(prepared[j], store);
      if constexpr (kPart % 2 == 1) put_escaped<kPart / 2>(next[j], out);
    }
    if constexpr (kRows > kFirst) {
      multiply<kRows - kFirst, 1>(quarter, a + kFirst * kInnerStep, step.waiting + kFirst * kPanelWidth);
    }
  }

  template <int kRows>
  void all_panels() const {
    some_panels<kRows, 1>(0, p_.panel_count);
  }

  void one_row() const {
    const int64_t pairs = p_.panel_count / 2;
    if (pairs > 0) some_panels<1, 2>(0, 2 * pairs);
    if (p_.panel_count % 2 != 0) some_panels<1, 1>(2 * pairs, 1);
  }

  /// Multiplies with `count` panels from `first` on, a multiple of the kPanels that are multiplied together.
  template <int kRows, int kPanels>
  void some_panels(int64_t first, int64_t count) const {
    alignas(64) uint16_t unpacked[kPanels * kPanelWords];
    alignas(64) float waiting[kPanels * kRows * kPanelWidth];
    const int64_t end = p_.first_panel + first + count;
    Unpacking next[kPanels];
    for (int j = 0; j < kPanels; ++j) {
      next[j] = first_of(p_.first_panel + first + j);
      uint16_t* const words = unpacked + j * kPanelWords;
      Tile::unpack(p_.weights, next[j].at, words);
      put_escaped<0>(next[j], words);
      put_escaped<1>(next[j], words);
    }
    int64_t words = 0;
    for (int64_t panel = first; panel < first + count; panel += kPanels) {
      for (float& sum : waiting) sum = 0.0f;
      for (int64_t tile = 0; tile < tiles_; ++tile, words ^= kTileWords) {
        typename Tile::Prepared prepared[kPanels];
#pragma GCC unroll 2
        for (int j = 0; j < kPanels; ++j) {
          advance<kPanels>(next[j], end);
          Tile::prefetch(p_.weights, next[j].at.index + kPrefetchTiles);
          prepared[j] = Tile::prepare(p_.weights, next[j].at);
        }
        const Step step{unpacked + words, p_.widened + tile * kRows * kInnerStep, waiting,
                        unpacked + (words ^ kTileWords)};
        part<0, kRows>(step, prepared, next);
        part<1, kRows>(step, prepared, next);
        part<2, kRows>(step, prepared, next);
        part<3, kRows>(step, prepared, next);
      }
      for (int64_t j = 0; j < kPanels; ++j) {
        for (int64_t r = 0; r < kRows; ++r) {
          V::load(waiting + (j * kRows + r) * kPanelWidth)
              .store(p_.c + r * p_.c_stride + (panel + j) * kPanelWidth);
        }
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
