#pragma once

#include <type_traits>

#include "kernels/generic/activation_sums.h"
#include "kernels/generic/integer_dots.h"
#include "kernels/generic/shared_exponents.h"
#include "kernels/kernel_table.h"

namespace verbatim::generic {

/// The number of panels that are read side by side: memory gives more where it is asked for in more places.
inline constexpr int kIntegerStreams = 4;
/// The number of panels that are read side by side where more than four rows are multiplied by two panels
/// together (IntegerMicro::kManyRows).
inline constexpr int kIntegerStreamsOfManyRows = 2;

/// A product with integer weights.
struct IntegerProduct {
  const Int8Rows* a;
  const IntegerPanels* weights;
  float* c;
  int64_t c_stride;
  int64_t rows;
  int64_t panel_count;
};

/// The number of tiles whose weights share a scale.
inline constexpr int64_t integer_scale_tiles(int kind) {
  return kind == kIntegerMxfp4 || kind == kIntegerInt8 || kind == kIntegerUpper ? 1 : 4;
}
/// The number of tiles whose activations share a scale; their products are added up before they are scaled.
inline constexpr int64_t integer_dot_tiles(int kind) {
  return kind == kIntegerInt8 || kind == kIntegerUpper ? 1 : 4;
}
inline constexpr int64_t integer_scale_bytes(int kind) {
  return kind == kIntegerMxfp4 ? 16 : 32;
}

/// The scales of a group for sixteen columns. Scales of activations are halved because the tables of MXFP4
/// and BSFP hold doubled values, and so do the sums of upper halves. The scales of all other weights are
/// doubled here, which is exact.
template <typename V, int kKind>
VERBATIM_INLINE V integer_scales(const uint8_t* scales) {
  if constexpr (kKind == kIntegerMxfp4) {
    return V::from_exponents(scales);
  } else if constexpr (kKind == kIntegerBsfp) {
    return V::load(reinterpret_cast<const BFloat16*>(scales));
  } else if constexpr (kKind == kIntegerUpper) {
    return V::load(reinterpret_cast<const Float16*>(scales));
  } else {
    return V::load(reinterpret_cast<const Float16*>(scales)) * V::set(2.0f);
  }
}

/// The product with late scaling (ML-SpecQD Fig. 4). `Dot` is what IntegerDots takes.
template <typename V, typename Dot, int kKind>
struct IntegerMicro {
  using Dots = IntegerDots<Dot, kKind>;
  using Place = typename Dots::Place;
  using Fetch = typename Dots::Fetch;
  static constexpr int64_t kBytes = Dots::kBytes;
  static constexpr bool kShiftsWeights = Dots::kShiftsWeights;
  static constexpr int64_t kScaleTiles = integer_scale_tiles(kKind);
  static constexpr int64_t kDotTiles = integer_dot_tiles(kKind);

  /// Multiplies kRows rows, from `row` on, with kPanels panels, of which the first is `panel` and each of the
  /// others `apart` panels further on. They are far apart, because a core that reads one place after the
  /// other mostly waits for memory.
  template <int kRows, int kPanels>
  static void block(const IntegerProduct& p, int64_t row, int64_t panel, int64_t apart) {
    const int64_t tiles = p.a->k / kInnerStep;
    const int64_t groups = (tiles + kScaleTiles - 1) / kScaleTiles;
    const uint8_t* const codes = p.weights->codes + panel * tiles * kBytes;
    const uint8_t* const scales = p.weights->scales + panel * groups * integer_scale_bytes(kKind);
    [[maybe_unused]] const uint8_t* const zeros = p.weights->zeros + panel * groups * kPanelWidth;
    V sums[kPanels][kRows];
    for (int j = 0; j < kPanels; ++j) {
      for (int r = 0; r < kRows; ++r) sums[j][r] = V::set(0.0f);
    }
    RowSums<kRows> row_sums;
    for (int64_t t = 0; t < tiles; t += kDotTiles) {
      if (t % kTilesOfSums == 0) row_sums.gather(*p.a, row, t);
      const int64_t group = t / kScaleTiles;
      const int64_t count = t + kDotTiles < tiles ? kDotTiles : tiles - t;
      const auto place = [&](int j) __attribute__((always_inline)) {
        const uint8_t* const group_scales =
            scales + (j * apart * groups + group) * integer_scale_bytes(kKind);
        const uint8_t* const group_zeros = zeros + (j * apart * groups + group) * kPanelWidth;
        __builtin_prefetch(group_scales + kScalePrefetchBytes);
        const Fetch fetch{codes + t * kBytes + kCodePrefetchBytes + j * kDotTiles * kBytes / kPanels,
                          apart * tiles * kBytes, kPanels};
        return Place{row,          t,           count, codes + (j * apart * tiles + t) * kBytes,
                     group_scales, group_zeros, fetch};
      };
      constexpr int kTogether = kPanels > 1 ? panels_together(kRows) : 1;
      for (int j = 0; j < kPanels; j += kTogether) {
        if constexpr (kTogether == 2) {
          add_tiles<kRows, 2>(p, {place(j), place(j + 1)}, row_sums, sums + j);
        } else {
          add_tiles<kRows, 1>(p, {place(j)}, row_sums, sums + j);
        }
      }
    }
    for (int j = 0; j < kPanels; ++j) {
      float* const c = p.c + row * p.c_stride + (panel + j * apart) * kPanelWidth;
      for (int r = 0; r < kRows; ++r) sums[j][r].store(c + r * p.c_stride);
    }
  }

  /// Whether the sums of eight rows stay in registers; partial sums would take more of them.
  static constexpr bool kManyRows = V::kSums >= 16 && Dot::kWholeBytes;

  /// The number of panels whose sums stay in registers together.
  static constexpr int panels_together(int rows) { return rows > 4 ? 2 : 1; }

  /// Multiplies all rows with the panels `panel`, `panel` + apart, ...
  template <int kPanels>
  static void all_rows(const IntegerProduct& p, int64_t panel, int64_t apart) {
    int64_t row = 0;
    if constexpr (kManyRows && kPanels <= kIntegerStreamsOfManyRows) {
      for (; row + 8 <= p.rows; row += 8) block<8, kPanels>(p, row, panel, apart);
      switch (p.rows - row) {
        case 7:
          return block<7, kPanels>(p, row, panel, apart);
        case 6:
          return block<6, kPanels>(p, row, panel, apart);
        case 5:
          return block<5, kPanels>(p, row, panel, apart);
        default:
          break;
      }
    }
    for (; row + 4 <= p.rows; row += 4) block<4, kPanels>(p, row, panel, apart);
    switch (p.rows - row) {
      case 3:
        return block<3, kPanels>(p, row, panel, apart);
      case 2:
        return block<2, kPanels>(p, row, panel, apart);
      case 1:
        return block<1, kPanels>(p, row, panel, apart);
      default:
        return;
    }
  }

  /// Multiplies all rows with all panels, of which kStreams are read side by side.
  template <int kStreams>
  static void all_panels(const IntegerProduct& p) {
    const int64_t share = p.panel_count / kStreams;
    for (int64_t panel = 0; panel < share; ++panel) all_rows<kStreams>(p, panel, share);
    for (int64_t panel = share * kStreams; panel < p.panel_count; ++panel) all_rows<1>(p, panel, 0);
  }

  /// Multiplies all rows with all panels in the way that suits up to four rows.
  static void few_rows(const IntegerProduct& p) { all_panels<kIntegerStreams>(p); }

  /// Multiplies all rows with all panels.
  static void product(const IntegerProduct& p) {
    if constexpr (kManyRows) {
      if (p.rows > 4) return all_panels<kIntegerStreamsOfManyRows>(p);
    }
    few_rows(p);
  }

 private:
  /// The number that stands for zero in the operands of dot products.
  static constexpr int32_t kOffset = kKind == kIntegerMxfp4                            ? Dot::kE2m1Offset
                                     : kKind == kIntegerBsfp                           ? Dot::kBsfpOffset
                                     : kKind == kIntegerInt4 || kKind == kIntegerUpper ? 8
                                     : kKind == kIntegerInt8                           ? Dot::kInt8Offset
                                                                                       : 0;

  /// The factor of the sums of activations: one where columns have zero points of their own. An upper half u
  /// stands for twice the middle of its codes, 32 (u - 8) + 15; its products are shifted by the five bits of
  /// 32, and the factor is of the rest.
  static constexpr int32_t kSumFactor = kKind == kIntegerInt4Asymmetric ? 1
                                        : kKind == kIntegerUpper        ? 15 - 32 * kOffset
                                                                        : -kOffset;

  /// The sums of the activations of a block's rows.
  template <int kRows>
  using RowSums =
      std::conditional_t<kShiftsWeights, SumsOfTiles<Dot, kRows>,
                         SumsOfGroups<Dot, kRows, kKind == kIntegerMxfp4 ? 1 : kDotTiles, kSumFactor>>;

  /// The sums of some panels with the rows of a block.
  template <int kRows>
  using PanelSums = V (*)[kRows];

  /// Adds the scaled products of the rows with the tiles to `sums`, panel by panel.
  template <int kRows, int kTogether>
  VERBATIM_INLINE static void add_tiles(const IntegerProduct& p, const Place (&at)[kTogether],
                                        const RowSums<kRows>& row_sums, PanelSums<kRows> sums) {
    if constexpr (kKind == kIntegerMxfp4) {
      SharedExponents levels[kTogether];
      for (int j = 0; j < kTogether; ++j) levels[j] = SharedExponents(at[j].scales, at[j].count);
      add_level<kRows, kTogether>(p, at, levels, row_sums, sums);
      for (int j = 0; j < kTogether; ++j) {
        while (levels[j].more) {
          levels[j].advance();
          add_level<kRows, 1>(p, {at[j]}, {levels[j]}, row_sums, sums + j);
        }
      }
    } else {
      const int64_t row = at[0].row;
      const int8_t* const a = p.a->codes + row * p.a->stride + at[0].tile * kInnerStep;
      constexpr bool kSumsFirst = kKind != kIntegerInt4Asymmetric && kKind != kIntegerUpper;
      typename Dot::Sum dots[kTogether * kRows];
      for (int r = 0; r < kRows; ++r) {
        const auto start = Dot::start(kSumsFirst ? row_sums.group(r, at[0].tile) : 0);
        for (int j = 0; j < kTogether; ++j) dots[j * kRows + r] = start;
      }
      if constexpr (kKind == kIntegerInt8) {
        Dots::template dot_bytes<kRows, kTogether>(at, a, p.a->stride, dots);
      } else {
        for (int64_t i = 0; i < at[0].count; ++i) {
          Dots::template dot_nibbles<kRows>(at, i, a + i * kInnerStep, p.a->stride, dots);
        }
      }
      for (int r = 0; !kSumsFirst && r < kRows; ++r) {
        const int32_t sum = row_sums.group(r, at[0].tile);
        for (int j = 0; j < kTogether; ++j) {
          auto& dot = dots[j * kRows + r];
          if constexpr (kKind == kIntegerInt4Asymmetric) {
            dot = Dot::subtract_product(dot, at[j].zeros, sum);
          } else {
            dot = Dot::template add_shifted<5>(Dot::start(sum), dot);
          }
        }
      }
      V scales[kTogether];
      for (int j = 0; j < kTogether; ++j) scales[j] = integer_scales<V, kKind>(at[j].scales);
      add_scaled<kRows, kTogether>(p, at[0], scales, dots, sums);
    }
  }

  /// Adds the scaled products of the rows with the tiles to `sums`, for columns whose scale belongs to a
  /// level.
  template <int kRows, int kTogether>
  VERBATIM_INLINE static void add_level(const IntegerProduct& p, const Place (&at)[kTogether],
                                        const SharedExponents (&levels)[kTogether],
                                        const RowSums<kRows>& row_sums, PanelSums<kRows> sums) {
    const int64_t row = at[0].row;
    const int8_t* const a = p.a->codes + row * p.a->stride + at[0].tile * kInnerStep;
    const auto shifts_of = [&](int j, int64_t tile) {
      return reinterpret_cast<const uint8_t*>(&levels[j].shifts[tile]);
    };
    typename Dot::Sum totals[kTogether * kRows];
    for (auto& total : totals) total = Dot::start(0);
    if constexpr (kShiftsWeights) {
      static_assert(kDotTiles % 2 == 0);
      for (int tile = 0; tile < kDotTiles; tile += 2) {
        for (int j = 0; j < kTogether; ++j) {
          const auto offsets = Dot::negative_offsets(shifts_of(j, tile), shifts_of(j, tile + 1));
          for (int r = 0; r < kRows; ++r) {
            auto& total = totals[j * kRows + r];
            total = Dot::add_words(total, offsets, row_sums.pair(r, at[0].tile + tile));
          }
        }
      }
    }
    for (int64_t i = 0; i < at[0].count; ++i) {
      if constexpr (kShiftsWeights) {
        typename Dot::Sum shifts[kTogether];
        for (int j = 0; j < kTogether; ++j) shifts[j] = Dot::unsigned_bytes(shifts_of(j, i));
        Dots::template dot_nibbles<kRows, true>(at, i, a + i * kInnerStep, p.a->stride, totals, shifts);
      } else {
        typename Dot::Sum dots[kTogether * kRows];
        for (int r = 0; r < kRows; ++r) {
          const auto start = Dot::start(row_sums.group(r, at[0].tile + i));
          for (int j = 0; j < kTogether; ++j) dots[j * kRows + r] = start;
        }
        Dots::template dot_nibbles<kRows>(at, i, a + i * kInnerStep, p.a->stride, dots);
        for (int j = 0; j < kTogether; ++j) {
          for (int r = 0; r < kRows; ++r) {
            auto& total = totals[j * kRows + r];
            total = Dot::add_shifted(total, dots[j * kRows + r], shifts_of(j, i));
          }
        }
      }
    }
    V scales[kTogether];
    for (int j = 0; j < kTogether; ++j)
      scales[j] = V::from_exponents(reinterpret_cast<const uint8_t*>(&levels[j].step));
    add_scaled<kRows, kTogether>(p, at[0], scales, totals, sums);
  }

  template <int kRows, int kTogether>
  VERBATIM_INLINE static void add_scaled(const IntegerProduct& p, const Place& at,
                                         const V (&weight_scales)[kTogether],
                                         const typename Dot::Sum (&dots)[kTogether * kRows],
                                         PanelSums<kRows> sums) {
    for (int r = 0; r < kRows; ++r) {
      const V row_scale = V::set(p.a->scales[(at.row + r) * (p.a->k / kInnerStep) + at.tile]);
      for (int j = 0; j < kTogether; ++j) {
        // The product of the two scales alone may be subnormal, and slow, for tiny activations; hence this
        // order.
        const V scaled = Dot::to_float(dots[j * kRows + r]) * weight_scales[j];
        sums[j][r] = sums[j][r] + scaled * row_scale;
      }
    }
  }
};

/// The product where there are seldom more than four rows, for which it takes less code.
template <typename V, typename Dot, int kKind>
void integer_product_of_few_rows(const Int8Rows& a, const IntegerPanels& weights, float* c,
                                 int64_t c_stride) {
  IntegerMicro<V, Dot, kKind>::few_rows({&a, &weights, c, c_stride, a.rows, weights.panel_count});
}

template <typename V, typename Dot, int kKind>
void integer_product(const Int8Rows& a, const IntegerPanels& weights, float* c, int64_t c_stride) {
  IntegerMicro<V, Dot, kKind>::product({&a, &weights, c, c_stride, a.rows, weights.panel_count});
}

template <typename V, typename Dot>
void fill_integer(decltype(KernelTable::integer_product)& table) {
  table[kIntegerMxfp4] = integer_product<V, Dot, kIntegerMxfp4>;
  table[kIntegerBsfp] = integer_product<V, Dot, kIntegerBsfp>;
  table[kIntegerInt4] = integer_product<V, Dot, kIntegerInt4>;
  table[kIntegerInt4Asymmetric] = integer_product<V, Dot, kIntegerInt4Asymmetric>;
  table[kIntegerUpper] = integer_product<V, Dot, kIntegerUpper>;
  table[kIntegerInt8] = integer_product<V, Dot, kIntegerInt8>;
}

}  // namespace verbatim::generic
