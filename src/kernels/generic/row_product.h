#pragma once

#include "kernels/generic/each_index.h"
#include "kernels/generic/scaled.h"
#include "kernels/generic/tiles.h"

namespace verbatim::generic {

/// Whether the words W of an instruction set become floats in registers as fast as they are stored.
template <typename W>
concept HasFloats = requires(W words) {
  words.even();
};

// Tiles whose weights come as floats: weights<i>(part) are those of the sixteen columns at input i, 0 to 7,
// of one of the tile's four parts.

/// Tiles of four-bit codes, which stand for the code less kLess.
template <typename W, int kLess>
struct Int4Floats {
  using Prepared = const uint8_t*;
  using Part = W;
  VERBATIM_INLINE static void prefetch(const TilePanels& p, int64_t index) {
    prefetch_bytes<kCodeBytes>(p.codes + index * kCodeBytes);
  }
  VERBATIM_INLINE static Prepared prepare(const TilePanels& p, TilePlace at) {
    return p.codes + at.index * kCodeBytes;
  }
  VERBATIM_INLINE static Part part(Prepared codes, int part) { return W::load(codes + part * 64); }
  template <int kInput>
  VERBATIM_INLINE static auto weights(const Part& codes) {
    constexpr int kNibbles[] = {0, 8, 4, 12};  // of pairs: kQuadOrder
    return (kInput % 2 == 0 ? codes : codes.odd_as_even())
        .template integers<kNibbles[kInput / 2], 4, kLess>();
  }
};

/// Tiles of eight-bit codes, which are signed.
template <typename W>
struct Int8Floats {
  using Tile = Int8Tile<W>;
  using Prepared = const uint8_t*;
  struct Part {
    W quads[2];
  };
  VERBATIM_INLINE static void prefetch(const TilePanels& p, int64_t index) { Tile::prefetch(p, index); }
  VERBATIM_INLINE static Prepared prepare(const TilePanels& p, TilePlace at) { return Tile::prepare(p, at); }
  VERBATIM_INLINE static Part part(Prepared codes, int part) {
    return {{W::load(codes + part * 128), W::load(codes + part * 128 + 64)}};
  }
  template <int kInput>
  VERBATIM_INLINE static auto weights(const Part& codes) {
    const W& quad = codes.quads[kInput / 4];
    return (kInput % 2 == 0 ? quad : quad.odd_as_even()).template integers<kInput % 4 / 2 * 8, 8, 0, true>();
  }
};

/// Tiles of MXFP4, unpacked to BF16 first.
template <typename W>
struct Mxfp4Floats {
  using Tile = Mxfp4Tile<W>;
  using Prepared = typename Tile::Prepared;
  struct Part {
    W pairs[4];
  };
  VERBATIM_INLINE static void prefetch(const TilePanels& p, int64_t index) { Tile::prefetch(p, index); }
  VERBATIM_INLINE static Prepared prepare(const TilePanels& p, TilePlace at) { return Tile::prepare(p, at); }
  VERBATIM_INLINE static Part part(const Prepared& prepared, int part) {
    Part unpacked;
    Tile::template visit_part<0>(
        typename Tile::Prepared{prepared.codes + part * 64, prepared.table, prepared.deficit},
        [&]<int kPair>(W words) __attribute__((always_inline)) { unpacked.pairs[kPair] = words; });
    return unpacked;
  }
  template <int kInput>
  VERBATIM_INLINE static auto weights(const Part& unpacked) {
    const W& pair = unpacked.pairs[kInput / 2];
    return kInput % 2 == 0 ? pair.even() : pair.odd();
  }
};

/// The product of a few rows with tiles that are unpacked to floats in registers. The bits are those of
/// panels_bf16() and of scaled_panels() for unpacked panels.
template <typename V, typename Floats, typename Scaling>
class RowProduct {
 public:
  explicit RowProduct(const ScaledProduct& p) : p_(p), tiles_(p.tiles.weights.tiles) {}

  void run() const {
    static_assert(kMostRowProductRows == 8);
    switch (p_.tiles.rows) {
      case 1:
        return all_panels<1, 4>();
      case 2:
        return all_panels<2, 2>();
      case 3:
        return all_panels<3, 1>();
      case 4:
        return all_panels<4, 1>();
      case 5:
        return all_panels_twice<3, 2>();
      case 6:
        return all_panels_twice<3, 3>();
      case 7:
        return all_panels_twice<4, 3>();
      default:
        return all_panels_twice<4, 4>();
    }
  }

 private:
  static constexpr bool kScaled = Scaling::kGroupTiles != 0;

  template <int kRows, int kPanels>
  void all_panels() const {
    int64_t panel = 0;
    for (; panel + kPanels <= p_.tiles.panel_count; panel += kPanels) block<kRows, kPanels>(0, panel);
    if constexpr (kPanels > 1) {
      for (; panel < p_.tiles.panel_count; ++panel) block<kRows, 1>(0, panel);
    }
  }

  /// Multiplies with each panel kFirst rows and then kSecond, as registers hold the sums of no more:
  /// unpacking a panel to registers twice takes less time than unpacking it to memory once.
  template <int kFirst, int kSecond>
  void all_panels_twice() const {
    for (int64_t panel = 0; panel < p_.tiles.panel_count; ++panel) {
      block<kFirst, 1>(0, panel);
      block<kSecond, 1>(kFirst, panel);
    }
  }

  /// Whether a scale group ends with a tile.
  bool ends_group(int64_t tile) const {
    return Scaling::kGroupTiles == 1 || tile % Scaling::kGroupTiles == Scaling::kGroupTiles - 1 ||
           tile + 1 == tiles_;
  }

  /// Scales the products of the group that ends with a tile, adds them to the results and begins anew.
  template <int kRows, int kPanels>
  VERBATIM_INLINE void scale_group(int64_t row, int64_t panel, int64_t tile, V (&products)[kRows][kPanels],
                                   float (&results)[kRows][kPanels * kPanelWidth]) const {
    const int64_t groups = (tiles_ + Scaling::kGroupTiles - 1) / Scaling::kGroupTiles;
    const int64_t group = tile / Scaling::kGroupTiles;
    const auto* const scales = reinterpret_cast<const Float16*>(p_.tiles.weights.scales);
#pragma GCC unroll 4
    for (int j = 0; j < kPanels; ++j) {
      const int64_t index = ((panel + j) * groups + group) * kPanelWidth;
      const V scale = V::load(scales + index);
      V zero = V::set(0.0f);
      if constexpr (Scaling::kZeros) zero = V::load(p_.zeros + index);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const V scaled = scaled_product<Scaling::kZeros>(products[r][j], scale, zero, p_.group_sums,
                                                         (row + r) * groups + group);
        float* const to = results[r] + j * kPanelWidth;
        (group > 0 ? V::load(to) + scaled : scaled).store(to);
        products[r][j] = V::set(0.0f);
      }
    }
  }

  /// Multiplies kRows rows from `row` on with kPanels panels, of which `first` is the first.
  template <int kRows, int kPanels>
  void block(int64_t row, int64_t first) const {
    const TilePanels& weights = p_.tiles.weights;
    const int64_t panel = p_.tiles.first_panel + first;
    alignas(64) float results[kRows][kPanels * kPanelWidth];
    // Panels that take turns, as what is added to a sum waits for what was added before.
    constexpr int kTurns = kRows == 1 || kPanels < 2 ? 1 : 2;
    V sums[kRows][kPanels];
    for (auto& of_row : sums) {
      for (V& sum : of_row) sum = V::set(0.0f);
    }
    for (int64_t tile = 0; tile < tiles_; ++tile) {
      typename Floats::Prepared prepared[kPanels];
      for (int j = 0; j < kPanels; ++j) {
        const TilePlace at{panel + j, tile, (panel + j) * tiles_ + tile};
        Floats::prefetch(weights, at.index + kPrefetchTiles);
        prepared[j] = Floats::prepare(weights, at);
      }
      const float* a = p_.tiles.widened + (tile * p_.tiles.rows + row) * kInnerStep;
      for (int part = 0; part < 4; ++part, a += 8) {
#pragma GCC unroll 4
        for (int j = 0; j < kPanels; j += kTurns) {
          typename Floats::Part codes[kTurns];
          for (int i = 0; i < kTurns; ++i) codes[i] = Floats::part(prepared[j + i], part);
          each_index<8>([&]<int kInput>() __attribute__((always_inline)) {
#pragma GCC unroll 4
            for (int i = 0; i < kTurns; ++i) {
              const V input = Floats::template weights<kInput>(codes[i]);
#pragma GCC unroll 4
              for (int r = 0; r < kRows; ++r) {
                V& sum = sums[r][j + i];
                sum = fma_of_bf16(V::set(a[r * kInnerStep + kInput]), input, sum);
              }
            }
          });
        }
      }
      if constexpr (kScaled) {
        if (ends_group(tile)) scale_group(row, panel, tile, sums, results);
      }
    }
    if constexpr (!kScaled) {
      for (int r = 0; r < kRows; ++r) {
        for (int j = 0; j < kPanels; ++j) sums[r][j].store(results[r] + j * kPanelWidth);
      }
    }
    for (int64_t r = 0; r < kRows; ++r) {
      float* const to = p_.tiles.c + (row + r) * p_.tiles.c_stride + first * kPanelWidth;
      __builtin_memcpy(to, results[r], sizeof results[r]);
    }
  }

  const ScaledProduct p_;
  const int64_t tiles_;
};

/// KernelTable::row_product for a vector of floats and the words of tiles.
template <typename V, typename W>
void row_product(const ScaledProduct& p) {
  switch (p.tiles.reading) {
    case kTileMxfp4:
      return RowProduct<V, Mxfp4Floats<W>, Unscaled>(p).run();
    case kTileInt4:
      return RowProduct<V, Int4Floats<W, 8>, Scaled<kTilesPerScale>>(p).run();
    case kTileInt4Asymmetric:
      return RowProduct<V, Int4Floats<W, 0>, Scaled<kTilesPerScale, true>>(p).run();
    case kTileInt8:
      return RowProduct<V, Int8Floats<W>, Scaled<1>>(p).run();
    default:
      break;  // never asked for
  }
}

}  // namespace verbatim::generic
