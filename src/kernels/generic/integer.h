#pragma once

#include "kernels/generic/panel_loop.h"
#include "kernels/generic/shared_exponents.h"
#include "kernels/kernel_table.h"

namespace verbatim::generic {

/// The distance, in bytes, at which weights are prefetched before their use.
inline constexpr int64_t kCodePrefetchBytes = 2048;
inline constexpr int64_t kScalePrefetchBytes = 128;
/// The number of panels that are read side by side.
inline constexpr int kIntegerStreams = 4;

/// A product with integer weights.
struct IntegerProduct {
  const Int8Rows* a;
  const IntegerPanels* weights;
  float* c;
  int64_t c_stride;
  int64_t rows;
  int64_t panel_count;
};

inline constexpr int64_t integer_code_bytes(int kind) {
  return kind == kIntegerInt8 ? 512 : 256;
}
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

/// The product with late scaling (ML-SpecQD Fig. 4). `Dot` is the instruction set's part:
///   Dot::Bytes: 64 weights; load(); of 64 bytes of codes: e2m1_low/high(), bsfp_low/high(),
///   low/high_nibbles()
///   Dot::Sum: 16 integer sums; open(sum) makes a Partial that takes add()s of four quads, close() ends it;
///   BSFP's weights want a partial for every quad, and so do those that need all eight bits, with add_int8()
///   start(value), subtract_product(sum, bytes, value), to_float(sum)
///   add_shifted(sum, shifted, shifts): sum + (shifted << shifts, or nothing where that is 32 or more)
///
/// Where kWholeBytes, shift_bytes(bytes, shifts) has the four bytes of each column shifted left by its bits,
/// or zeros where these are 32 or more; the bytes stay below 256.
template <typename V, typename Dot, int kKind>
struct IntegerMicro {
  static constexpr int64_t kBytes = integer_code_bytes(kKind);
  static constexpr int64_t kScaleTiles = integer_scale_tiles(kKind);
  static constexpr int64_t kDotTiles = integer_dot_tiles(kKind);

  template <typename Packed>
  VERBATIM_INLINE static auto low_weights(const Packed& packed) {
    if constexpr (kKind == kIntegerMxfp4) {
      return Dot::e2m1_low(packed);
    } else if constexpr (kKind == kIntegerBsfp) {
      return Dot::bsfp_low(packed);
    } else {
      return Dot::low_nibbles(packed);
    }
  }
  template <typename Packed>
  VERBATIM_INLINE static auto high_weights(const Packed& packed) {
    if constexpr (kKind == kIntegerMxfp4) {
      return Dot::e2m1_high(packed);
    } else if constexpr (kKind == kIntegerBsfp) {
      return Dot::bsfp_high(packed);
    } else {
      return Dot::high_nibbles(packed);
    }
  }

  /// Prefetches weights of all panels in turn while one of them is multiplied, because a long burst for one
  /// panel would make the others wait.
  struct Fetch {
    const uint8_t* from;  ///< the bytes of the first panel to fetch
    int64_t apart;        ///< bytes between panels
    int panels;

    VERBATIM_INLINE Fetch tile(int64_t index) const {
      return {from + index * kBytes / panels, apart, panels};
    }
    /// Prefetches one cache line; called once for each of a tile's four blocks.
    VERBATIM_INLINE void line(int block) const {
      __builtin_prefetch(panels == 1 ? from + block * 64 : from + block * apart);
    }
  };

  /// Whether the weights of a level are shifted before they are multiplied, rather than their products after
  /// that. They are at most 24 then, and 192 shifted by SharedExponents::kStep: still a byte, which a dot
  /// product takes where it takes whole bytes.
  static constexpr bool kShiftsWeights = kKind == kIntegerMxfp4 && Dot::kWholeBytes && Dot::kE2m1Offset > 0;
  static_assert(24 << SharedExponents::kStep < 256);

  /// Whether a partial sum takes one quad: the weights of BSFP are up to 128.
  static constexpr bool kQuadByQuad = kKind == kIntegerBsfp && !Dot::kWholeBytes;

  /// The place of `count` tiles whose products are scaled together.
  struct Place {
    int64_t row;
    int64_t tile;
    int64_t count;
    const uint8_t* codes;
    const uint8_t* scales;
    const uint8_t* zeros;
    Fetch fetch;
  };

  VERBATIM_INLINE static void add_quad(typename Dot::Sum& dot,
                                       [[maybe_unused]] typename Dot::Partial& partial,
                                       const typename Dot::Bytes& weights, const int8_t* quad) {
    if constexpr (kQuadByQuad) {
      dot = Dot::close(dot, Dot::add(Dot::open(dot), weights, quad));
    } else {
      partial = Dot::add(partial, weights, quad);
    }
  }

  /// Multiplies rows with the tile `index` behind each of kTogether places, which are in panels of their own:
  /// an activation that was loaded and spread meets all of them. With kShifted the weights of panel j are
  /// shifted by the bits of shifts[j].
  template <int kRows, bool kShifted = false, int kTogether>
  VERBATIM_INLINE static void dot_nibbles(
      const Place (&at)[kTogether], int64_t index, const int8_t* a, int64_t a_stride,
      typename Dot::Sum (&dots)[kTogether * kRows],
      [[maybe_unused]] const typename Dot::Sum (&shifts)[kTogether] = {}) {
    const uint8_t* codes[kTogether];
    Fetch fetch[kTogether];
    for (int j = 0; j < kTogether; ++j) {
      codes[j] = at[j].codes + index * kBytes;
      fetch[j] = at[j].fetch.tile(index);
    }
    constexpr int kPartials = Dot::kWholeBytes ? 1 : 2;
    constexpr int kBlocks = 4 / kPartials;
    for (int part = 0; part < kPartials; ++part) {
      typename Dot::Partial partial[kTogether * kRows];
      for (int j = 0; j < kTogether; ++j) {
        for (int r = 0; r < kRows; ++r) partial[j * kRows + r] = Dot::open(dots[j * kRows + r]);
      }
      for (int block = kBlocks * part; block < kBlocks * part + kBlocks; ++block) {
        typename Dot::Bytes low[kTogether];
        typename Dot::Bytes high[kTogether];
        for (int j = 0; j < kTogether; ++j) {
          fetch[j].line(block);
          const auto packed = Dot::load(codes[j] + block * 64);
          low[j] = low_weights(packed);
          high[j] = high_weights(packed);
          if constexpr (kShifted) {
            low[j] = Dot::shift_bytes(low[j], shifts[j]);
            high[j] = Dot::shift_bytes(high[j], shifts[j]);
          }
        }
        for (int r = 0; r < kRows; ++r) {
          const int8_t* const quads = a + r * a_stride + block * 8;
          for (int j = 0; j < kTogether; ++j)
            add_quad(dots[j * kRows + r], partial[j * kRows + r], low[j], quads);
          for (int j = 0; j < kTogether; ++j)
            add_quad(dots[j * kRows + r], partial[j * kRows + r], high[j], quads + 4);
        }
      }
      for (int j = 0; !kQuadByQuad && j < kTogether; ++j) {
        for (int r = 0; r < kRows; ++r)
          dots[j * kRows + r] = Dot::close(dots[j * kRows + r], partial[j * kRows + r]);
      }
    }
  }

  template <int kRows, int kTogether>
  VERBATIM_INLINE static void dot_bytes(const Place (&at)[kTogether], const int8_t* a, int64_t a_stride,
                                        typename Dot::Sum (&dots)[kTogether * kRows]) {
    for (int quad = 0; quad < 8; ++quad) {
      typename Dot::Bytes weights[kTogether];
      for (int j = 0; j < kTogether; ++j) {
        __builtin_prefetch(at[j].codes + kCodePrefetchBytes + quad * 64);
        weights[j] = Dot::int8(at[j].codes + quad * 64);
      }
      for (int r = 0; r < kRows; ++r) {
        for (int j = 0; j < kTogether; ++j) {
          dots[j * kRows + r] = Dot::close(
              dots[j * kRows + r],
              Dot::add_int8(Dot::open(dots[j * kRows + r]), weights[j], a + r * a_stride + quad * 4));
        }
      }
    }
  }

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
    for (int64_t t = 0; t < tiles; t += kDotTiles) {
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
          add_tiles<kRows, 2>(p, {place(j), place(j + 1)}, sums + j);
        } else {
          add_tiles<kRows, 1>(p, {place(j)}, sums + j);
        }
      }
    }
    for (int j = 0; j < kPanels; ++j) {
      float* const c = p.c + row * p.c_stride + (panel + j * apart) * kPanelWidth;
      for (int r = 0; r < kRows; ++r) sums[j][r].store(c + r * p.c_stride);
    }
  }

  /// The number of panels whose sums stay in registers together.
  static constexpr int panels_together(int rows) { return V::kSums >= 16 && rows == 8 ? 2 : 1; }

  /// Multiplies all rows with the panels `panel`, `panel` + apart, ...
  template <int kPanels>
  static void all_rows(const IntegerProduct& p, int64_t panel, int64_t apart) {
    int64_t row = 0;
    if constexpr (V::kSums >= 16) {  // the sums of eight rows stay in registers
      for (; row + 8 <= p.rows; row += 8) block<8, kPanels>(p, row, panel, apart);
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

  static void product(const IntegerProduct& p) {
    const int64_t share = p.panel_count / kIntegerStreams;
    for (int64_t panel = 0; panel < share; ++panel) all_rows<kIntegerStreams>(p, panel, share);
    for (int64_t panel = share * kIntegerStreams; panel < p.panel_count; ++panel) all_rows<1>(p, panel, 0);
  }

 private:
  /// The number that stands for zero in the operands of dot products.
  static constexpr int32_t kSumOffset = kKind == kIntegerMxfp4                            ? Dot::kE2m1Offset
                                        : kKind == kIntegerBsfp                           ? Dot::kBsfpOffset
                                        : kKind == kIntegerInt4 || kKind == kIntegerUpper ? 8
                                        : kKind == kIntegerInt8                           ? Dot::kInt8Offset
                                                                                          : 0;

  VERBATIM_INLINE static int32_t activation_sum(const IntegerProduct& p, int64_t row, const Place& at) {
    const int32_t* const sums = p.a->sums + row * (p.a->k / kInnerStep) + at.tile;
    int32_t sum = *sums;
    if constexpr (kDotTiles > 1) {
      for (int64_t i = 1; i < at.count; ++i) sum += sums[i];
    }
    return sum;
  }

  /// The sums of some panels with the rows of a block.
  template <int kRows>
  using PanelSums = V (*)[kRows];

  /// Adds the scaled products of the rows with the tiles to `sums`, panel by panel.
  template <int kRows, int kTogether>
  VERBATIM_INLINE static void add_tiles(const IntegerProduct& p, const Place (&at)[kTogether],
                                        PanelSums<kRows> sums) {
    if constexpr (kKind == kIntegerMxfp4) {
      SharedExponents levels[kTogether];
      for (int j = 0; j < kTogether; ++j) levels[j] = SharedExponents(at[j].scales, at[j].count);
      add_level<kRows, kTogether>(p, at, levels, sums);
      for (int j = 0; j < kTogether; ++j) {
        while (levels[j].more) {
          levels[j].advance();
          add_level<kRows, 1>(p, {at[j]}, {levels[j]}, sums + j);
        }
      }
    } else {
      const int64_t row = at[0].row;
      const int8_t* const a = p.a->codes + row * p.a->stride + at[0].tile * kInnerStep;
      typename Dot::Sum dots[kTogether * kRows];
      for (int r = 0; r < kRows; ++r) {
        const auto start = Dot::start(-kSumOffset * activation_sum(p, row + r, at[0]));
        for (int j = 0; j < kTogether; ++j) dots[j * kRows + r] = start;
      }
      if constexpr (kKind == kIntegerInt8) {
        dot_bytes<kRows, kTogether>(at, a, p.a->stride, dots);
      } else {
        for (int64_t i = 0; i < at[0].count; ++i) {
          dot_nibbles<kRows>(at, i, a + i * kInnerStep, p.a->stride, dots);
        }
      }
      if constexpr (kKind == kIntegerInt4Asymmetric) {
        for (int r = 0; r < kRows; ++r) {
          const int32_t sum = activation_sum(p, row + r, at[0]);
          for (int j = 0; j < kTogether; ++j)
            dots[j * kRows + r] = Dot::subtract_product(dots[j * kRows + r], at[j].zeros, sum);
        }
      }
      if constexpr (kKind == kIntegerUpper) {
        // An upper half u stands for the middle of its codes, 16 u + 7.5, of which this is twice the sum.
        for (int r = 0; r < kRows; ++r) {
          const auto middles = Dot::start(15 * activation_sum(p, row + r, at[0]));
          for (int j = 0; j < kTogether; ++j)
            dots[j * kRows + r] = Dot::template add_shifted<5>(middles, dots[j * kRows + r]);
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
                                        const SharedExponents (&levels)[kTogether], PanelSums<kRows> sums) {
    const int64_t row = at[0].row;
    const int8_t* const a = p.a->codes + row * p.a->stride + at[0].tile * kInnerStep;
    typename Dot::Sum totals[kTogether * kRows];
    for (auto& total : totals) total = Dot::start(0);
    for (int64_t i = 0; i < at[0].count; ++i) {
      const auto shifts_of = [&](int j) { return reinterpret_cast<const uint8_t*>(&levels[j].shifts[i]); };
      const auto start = [&](int r) {
        return Dot::start(-kSumOffset * p.a->sums[(row + r) * (p.a->k / kInnerStep) + at[0].tile + i]);
      };
      if constexpr (kShiftsWeights) {
        typename Dot::Sum shifts[kTogether];
        for (int j = 0; j < kTogether; ++j) shifts[j] = Dot::unsigned_bytes(shifts_of(j));
        for (int r = 0; r < kRows; ++r) {
          for (int j = 0; j < kTogether; ++j)
            totals[j * kRows + r] = Dot::add_shifted(totals[j * kRows + r], start(r), shifts_of(j));
        }
        dot_nibbles<kRows, true>(at, i, a + i * kInnerStep, p.a->stride, totals, shifts);
      } else {
        typename Dot::Sum dots[kTogether * kRows];
        for (int r = 0; r < kRows; ++r) {
          for (int j = 0; j < kTogether; ++j) dots[j * kRows + r] = start(r);
        }
        dot_nibbles<kRows>(at, i, a + i * kInnerStep, p.a->stride, dots);
        for (int j = 0; j < kTogether; ++j) {
          for (int r = 0; r < kRows; ++r)
            totals[j * kRows + r] =
                Dot::add_shifted(totals[j * kRows + r], dots[j * kRows + r], shifts_of(j));
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
