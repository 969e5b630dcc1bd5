#include "kernels/amx/integer_unpack.h"
#include "kernels/amx/products.h"
#include "kernels/amx/tiles.h"
#include "kernels/avx512/vector.h"

namespace verbatim::amx {

namespace {

// Weights of four bits and activations that share a scale over 128 inputs: four tiles of codes are two tile
// products into one tile of sums, which is scaled once.

constexpr int64_t kGroupTiles = generic::SharedExponents::kTiles;  // of codes
constexpr int64_t kCodeBytes = generic::kCodeBytes;
constexpr int64_t kHalfBytes = 512;   // a tile of codes, unpacked
constexpr int64_t kTileBytes = 1024;  // two of them: what a tile product takes
constexpr int64_t kRows = 16;
constexpr int64_t kSums = kRows * kPanelWidth;
/// The bytes of codes that are multiplied with all rows, sixteen at a time, before the next are read from
/// memory: they stay in the second-level cache.
constexpr int64_t kKeptBytes = 512 * 1024;

// Sums are in tiles 0 to 2. Weights of all streams go through one, for the fewer are in use, the more can be
// renamed (docs/performance.md).
constexpr int kActivations = 4;
constexpr int kWeights = 6;

/// Up to sixteen rows of a product.
struct Rows {
  const int8_t* codes;
  int64_t stride;
  const float* scales;  ///< [count][tiles]
  const int32_t* sums;
  int64_t count;
  float* c;  ///< of panel 0
  int64_t c_stride;
};

/// A scale group of a panel.
struct Group {
  const uint8_t* codes;
  const uint8_t* scales;
  const uint8_t* zeros;
  int64_t first_tile;
  int64_t tiles;  ///< 4, or what is left
};

/// The levels of a group of MXFP4 (generic/shared_exponents.h). Other kinds of weights have none.
template <int kKind>
struct Levels {};
template <>
struct Levels<kIntegerMxfp4> {
  FirstLevel first;
  generic::SharedExponents all;  ///< if the first is not whole

  VERBATIM_INLINE void begin(const uint8_t* exponents, int64_t tiles) {
    first = FirstLevel(exponents, tiles);
    if (!first.whole) [[unlikely]]
      all = generic::SharedExponents(exponents, tiles);
  }
};

/// Rows by kStreams panels side by side, far apart, because a core that reads one place after the other waits
/// for the memory most of the time. Unpacking is a group ahead of multiplying and scaling one behind it, so
/// that none waits for what was just written.
template <int kKind, int kStreams>
class Streams {
 public:
  Streams(const Rows& rows, const IntegerPanels& weights, int64_t tiles)
      : rows_(rows), weights_(weights), tiles_(tiles), groups_((tiles + kGroupTiles - 1) / kGroupTiles) {}

  /// Multiplies with panels first .. first + kStreams · share - 1.
  void run(int64_t first, int64_t share) {
    const int64_t groups = groups_;
    const int64_t panels_apart = share;
    Group next[kStreams];
    for (int j = 0; j < kStreams; ++j) next[j] = group_at(first + j * panels_apart, 0);
    for (int j = 0; j < kStreams; ++j) {
      for (int64_t pair = 0; pair * 2 < next[j].tiles; ++pair) unpack_pair(next[j], j, 0, pair);
    }
    Group before[kStreams] = {};
    Group now[kStreams] = {};
    int64_t step = 0;
    for (int64_t panel = first; panel < first + share; ++panel) {
      float* const c = rows_.c + panel * kPanelWidth;
      for (int64_t group = 0; group < groups; ++group, ++step) {
        const bool last = group + 1 == groups;
        const bool more = !last || panel + 1 < first + share;
        for (int j = 0; j < kStreams; ++j) {
          before[j] = now[j];
          now[j] = next[j];
          if (more) advance(next[j], last);
        }
        multiply(now[0], step, more ? next : nullptr);
        if (step == 0) continue;
        // The products of a panel's last group are added while the next panel is multiplied.
        if (group > 0) {
          add(before, step - 1, nullptr, panels_apart);
        } else {
          add(before, step - 1, c - kPanelWidth, panels_apart);
        }
      }
    }
    add(now, step - 1, rows_.c + (first + share - 1) * kPanelWidth, panels_apart);
  }

 private:
  static constexpr int64_t kSlots = 4;  // more than steps that are under way

  VERBATIM_INLINE static constexpr int64_t scale_bytes(int64_t tiles) {
    return kKind == kIntegerMxfp4 ? tiles * kPanelWidth : generic::integer_scale_bytes(kKind);
  }
  VERBATIM_INLINE Group group_at(int64_t panel, int64_t group) const {
    const int64_t scale_units =
        kKind == kIntegerMxfp4 ? panel * tiles_ + group * kGroupTiles : panel * groups_ + group;
    const int64_t left = tiles_ - group * kGroupTiles;
    return {weights_.codes + (panel * tiles_ + group * kGroupTiles) * kCodeBytes,
            weights_.scales + scale_units * scale_bytes(1),
            weights_.zeros + (panel * groups_ + group) * kPanelWidth, group * kGroupTiles,
            left < kGroupTiles ? left : kGroupTiles};
  }
  /// Advances to the next group; after the `last` one to the first of the next panel.
  VERBATIM_INLINE void advance(Group& at, bool last) const {
    at.codes += at.tiles * kCodeBytes;
    at.scales += scale_bytes(at.tiles);
    at.zeros += kPanelWidth;
    at.first_tile = last ? 0 : at.first_tile + kGroupTiles;
    const int64_t left = tiles_ - at.first_tile;
    at.tiles = left < kGroupTiles ? left : kGroupTiles;
  }

  /// Unpacks tiles 2 `pair` and 2 `pair` + 1 of a group. With the first pair it also finds the levels of the
  /// group.
  VERBATIM_INLINE void unpack_pair(const Group& at, int stream, int64_t step, int64_t pair) {
    if (pair == 0) __builtin_prefetch(at.scales + 2 * generic::kScalePrefetchBytes);
    uint8_t* const out = stage_.bytes[step % 2][stream][pair];
    if constexpr (kKind == kIntegerMxfp4) {
      Levels<kKind>& levels = levels_[step % kSlots][stream];
      if (pair == 0) levels.begin(at.scales, at.tiles);
      if (levels.first.whole) [[likely]] {
        unpack_tiles(
            at, pair, out, [&](int64_t tile) __attribute__((always_inline)) {
              return ShiftedLookUp(levels.first, tile);
            });
      } else {
        unpack_tiles(
            at, pair, out, [&](int64_t tile) __attribute__((always_inline)) {
              return LevelLookUp(levels.all.shifts[tile]);
            });
      }
    } else {
      unpack_tiles(
          at, pair, out, [](int64_t) __attribute__((always_inline)) { return LookUp<kKind>(); });
    }
  }
  /// Unpacks two tiles; `look_up` makes the look-up by which the codes of a tile become bytes.
  template <typename LookUpOf>
  VERBATIM_INLINE static void unpack_tiles(const Group& at, int64_t pair, uint8_t* out,
                                           const LookUpOf& look_up) {
    const uint8_t* const from = at.codes + pair * 2 * kCodeBytes;
    unpack_bytes(from, look_up(pair * 2), out);
    if (pair * 2 + 1 < at.tiles) [[likely]] {
      unpack_bytes(from + kCodeBytes, look_up(pair * 2 + 1), out + kHalfBytes);
      return;
    }
    // Zeros make it indifferent what follows the activations.
    for (int64_t i = kHalfBytes; i < kTileBytes; i += 64) {
      _mm512_store_si512(out + i, _mm512_setzero_si512());
    }
  }

  /// Computes the products of a step while the next step is unpacked.
  VERBATIM_INLINE void multiply(const Group& now, int64_t step, const Group* next) {
    const int8_t* const a = rows_.codes + now.first_tile * kInnerStep;
    const int64_t stride = rows_.stride;
    const int64_t half = step % 2;
    tile_zero<0>();
    if constexpr (kStreams > 1) tile_zero<1>();
#pragma GCC unroll 2
    for (int64_t pair = 0; pair < 2; ++pair) {
      const bool here = pair * 2 < now.tiles;
      if (here) tile_load<kActivations>(a + pair * 2 * kInnerStep, stride);
      const auto each = [&]<int kStream>() __attribute__((always_inline)) {
        if (next != nullptr && pair * 2 < next[kStream].tiles) [[likely]] {
          unpack_pair(next[kStream], kStream, step + 1, pair);
        }
        if (!here) [[unlikely]]
          return;
        tile_load<kWeights>(stage_.bytes[half][kStream][pair], 64);
        tile_dot_int8<kStream, kActivations, kWeights, false>();
      };
      each.template operator()<0>();
      if constexpr (kStreams > 1) each.template operator()<1>();
    }
    tile_store<0>(stage_.dots[half][0], 64);
    if constexpr (kStreams > 1) tile_store<1>(stage_.dots[half][kStreams - 1], 64);
  }

  /// Adds the products of a step to the sums. `c`: of the first stream's panel, if the groups are the last.
  VERBATIM_INLINE void add(const Group (&groups)[kStreams], int64_t step, float* c, int64_t panels_apart) {
    for (int j = 0; j < kStreams; ++j) {
      const Group& at = groups[j];
      const Levels<kKind>& levels = levels_[step % kSlots][j];
      const __m512 scales = column_scales(at, levels);
      const int32_t* const dots = stage_.dots[step % 2][j];
      at.first_tile == 0 ? add_scaled<true>(at, dots, scales, stage_.sums[j])
                         : add_scaled<false>(at, dots, scales, stage_.sums[j]);
      if constexpr (kKind == kIntegerMxfp4) {
        if (!levels.first.whole && levels.all.more) [[unlikely]]
          add_further_levels(at, levels.all, stage_.sums[j]);
      }
      if (c != nullptr) put_down(stage_.sums[j], c + j * panels_apart * kPanelWidth);
    }
  }

  VERBATIM_INLINE static __m512 column_scales(const Group& at, [[maybe_unused]] const Levels<kKind>& levels) {
    if constexpr (kKind == kIntegerMxfp4) {
      return exponent_scales(levels.first.step);
    } else {
      return generic::integer_scales<avx512::F32x16, kKind>(at.scales).lanes;
    }
  }
  VERBATIM_INLINE static __m512 exponent_scales(__m128i exponents) {
    return avx512::F32x16::from_exponents(reinterpret_cast<const uint8_t*>(&exponents)).lanes;
  }

  /// Computes sums += float(dots) · scales of the columns · scale of the row's group; the first group begins
  /// from zero.
  template <bool kFirst>
  VERBATIM_INLINE void add_scaled(const Group& at, const int32_t* dots, __m512 scales, float* sums) const {
    const float* row_scales = rows_.scales + at.first_tile;
    const int64_t tiles = tiles_;
    const auto add_row = [&](int64_t row, int64_t offset) __attribute__((always_inline)) {
      __m512i dot = _mm512_load_si512(dots + offset * kPanelWidth);
      if constexpr (kKind == kIntegerInt4Asymmetric) dot = without_zeros(dot, at, row + offset);
      const __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(dot), scales);
      const __m512 product = _mm512_mul_ps(scaled, _mm512_set1_ps(row_scales[offset * tiles]));
      float* const to = sums + offset * kPanelWidth;
      _mm512_store_ps(to, _mm512_add_ps(kFirst ? _mm512_setzero_ps() : _mm512_load_ps(to), product));
    };
    const auto next = [&](int64_t rows) __attribute__((always_inline)) {
      dots += rows * kPanelWidth;
      sums += rows * kPanelWidth;
      row_scales += rows * tiles;
    };
    int64_t row = 0;
    for (; row + 4 <= rows_.count; row += 4, next(4)) {
      for (int64_t offset = 0; offset < 4; ++offset) add_row(row, offset);
    }
    for (; row < rows_.count; ++row, next(1)) add_row(row, 0);
  }

  VERBATIM_INLINE void put_down(const float* sums, float* to) const {
    for (int64_t row = 0; row < rows_.count; ++row, sums += kPanelWidth, to += rows_.c_stride) {
      _mm512_storeu_ps(to, _mm512_load_ps(sums));
    }
  }

  VERBATIM_INLINE __m512i without_zeros(__m512i dot, const Group& at, int64_t row) const {
    const __m512i zeros = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at.zeros)));
    const int32_t* const sums = rows_.sums + row * tiles_ + at.first_tile;
    int32_t sum = 0;
    for (int64_t i = 0; i < at.tiles; ++i) sum += sums[i];
    return _mm512_sub_epi32(dot, _mm512_mullo_epi32(zeros, _mm512_set1_epi32(sum)));
  }

  /// Adds the products of tiles whose exponents are far below others of their group, which belong to further
  /// levels.
  [[gnu::noinline]] void add_further_levels(const Group& at, generic::SharedExponents level, float* sums) {
    while (level.more) {
      level.advance();
      tile_zero<2>();
      for (int64_t pair = 0; pair * 2 < at.tiles; ++pair) {
        unpack_tiles(
            at, pair, stage_.further, [&](int64_t tile) __attribute__((always_inline)) {
              return LevelLookUp(level.shifts[tile]);
            });
        tile_load<kActivations>(rows_.codes + (at.first_tile + pair * 2) * kInnerStep, rows_.stride);
        tile_load<kWeights>(stage_.further, 64);
        tile_dot_int8<2, kActivations, kWeights, false>();
      }
      tile_store<2>(stage_.further_dots, 64);
      add_scaled<false>(at, stage_.further_dots, exponent_scales(reinterpret_cast<__m128i>(level.step)),
                        sums);
    }
  }

  /// Page aligned, so that its stores are not taken for what the loads of weights wait for more often than
  /// need be.
  struct alignas(4096) Stage {
    uint8_t bytes[2][kStreams][2][kTileBytes];
    int32_t dots[2][kStreams][kSums];
    float sums[kStreams][kSums];
    alignas(64) uint8_t further[kTileBytes];
    int32_t further_dots[kSums];
  };

  Rows rows_;
  IntegerPanels weights_;
  int64_t tiles_;
  int64_t groups_;
  Levels<kKind> levels_[kSlots][kStreams]{};
  Stage stage_{};
};

void configure(int64_t rows) {
  TileConfig config;
  for (int tile = 0; tile < 3; ++tile) config.set(tile, static_cast<int>(rows), 64);  // sums
  config.set(kActivations, static_cast<int>(rows), 64);                               // 64 inputs of a group
  config.set(kWeights, 16, 64);  // 16 quads × 16 columns
  config.load();
}

template <int kKind>
void multiply(const Int8Rows& a, const IntegerPanels& weights, float* c, int64_t c_stride) {
  const int64_t tiles = a.k / kInnerStep;
  const int64_t kept = kKeptBytes / (tiles * kCodeBytes) / 2 * 2;
  const int64_t width = a.rows <= kRows ? weights.panel_count : kept < 2 ? 2 : kept;
  for (int64_t panel = 0; panel < weights.panel_count; panel += width) {
    const int64_t count = weights.panel_count - panel < width ? weights.panel_count - panel : width;
    for (int64_t row = 0; row < a.rows; row += kRows) {
      const int64_t rows = a.rows - row < kRows ? a.rows - row : kRows;
      configure(rows);
      const Rows block{a.codes + row * a.stride, a.stride, a.scales + row * tiles, a.sums + row * tiles, rows,
                       c + row * c_stride,       c_stride};
      if (count > 1) Streams<kKind, 2>(block, weights, tiles).run(panel, count / 2);
      if (count % 2 == 1) Streams<kKind, 1>(block, weights, tiles).run(panel + count - 1, 1);
    }
  }
  _tile_release();
}

}  // namespace

void integer_mxfp4(const Int8Rows& a, const IntegerPanels& weights, float* c, int64_t c_stride) {
  multiply<kIntegerMxfp4>(a, weights, c, c_stride);
}
void integer_bsfp(const Int8Rows& a, const IntegerPanels& weights, float* c, int64_t c_stride) {
  multiply<kIntegerBsfp>(a, weights, c, c_stride);
}
void integer_int4(const Int8Rows& a, const IntegerPanels& weights, float* c, int64_t c_stride) {
  multiply<kIntegerInt4>(a, weights, c, c_stride);
}
void integer_int4_asymmetric(const Int8Rows& a, const IntegerPanels& weights, float* c, int64_t c_stride) {
  multiply<kIntegerInt4Asymmetric>(a, weights, c, c_stride);
}

}  // namespace verbatim::amx
