#pragma once

#include "kernels/generic/panel_loop.h"
#include "kernels/generic/scaled.h"

namespace verbatim::generic {

/// Sets the sums of a block before the first product: to the contents of c if `accumulate`, else to zeros.
template <typename V, int kRows, int kPanels>
[[gnu::always_inline]] inline void load_sums(V (&sums)[kRows][kPanels], const float* c, int64_t c_stride,
                                             bool accumulate) {
  for (int r = 0; r < kRows; ++r) {
    for (int j = 0; j < kPanels; ++j) {
      sums[r][j] = accumulate ? V::load(c + r * c_stride + j * kPanelWidth) : V::set(0.0f);
    }
  }
}

template <typename V, int kRows, int kPanels>
[[gnu::always_inline]] inline void store_sums(const V (&sums)[kRows][kPanels], float* c, int64_t c_stride) {
  for (int r = 0; r < kRows; ++r) {
    for (int j = 0; j < kPanels; ++j) sums[r][j].store(c + r * c_stride + j * kPanelWidth);
  }
}

/// A product whose activations were widened to float.
struct WidenedProduct : PanelProduct<float, BFloat16> {
  const BFloat16* behind = nullptr;  ///< what is multiplied after the last panel; there may be no such memory
};

/// The memory that a block asks for while it multiplies: a line at `from`, and one `step` bytes further with
/// each pair of inputs. Of several panels that it multiplies together, each has its own, a panel apart.
struct BlockFetch {
  const char* from;
  int64_t step;
};

/// What a block of kRows rows from `row` on asks for while it multiplies a panel in BF16: the panel itself,
/// some bytes ahead of its use, so that reading goes on while a few rows multiply. With kShares, where
/// several blocks multiply a panel, each asks for its share of the panels that come next instead: otherwise
/// the first one would wait for memory and the others would leave it idle. Where PanelProduct::near holds, a
/// block asks for what it reads anyway.
template <int kRows, bool kShares>
VERBATIM_INLINE BlockFetch block_fetch(const WidenedProduct& p, int64_t row, int64_t panel) {
  constexpr int64_t kBytesAhead = 8192;
  constexpr int64_t kBytesOfPair = 2 * kPanelWidth * sizeof(BFloat16);
  const BFloat16* const weights = p.panels + panel * p.panel_stride;
  const auto bytes = [](const BFloat16* at) { return reinterpret_cast<const char*>(at); };
  if (p.near) return {bytes(weights), kBytesOfPair};
  if (!kShares || p.rows == kRows) return {bytes(weights) + kBytesAhead, kBytesOfPair};
  const int64_t next_panel = panel + panels_of_many_rows(p.rows);
  const BFloat16* const next = next_panel < p.panel_count
                                   ? p.panels + next_panel * p.panel_stride
                                   : p.behind + (next_panel - p.panel_count) * p.panel_stride;
  return {bytes(next) + row * (p.k / 2 * kBytesOfPair) / p.rows,
          (kBytesOfPair * kRows + p.rows - 1) / p.rows};
}

/// A block of the product with panels in BF16: Adding::add() adds the products of some inputs to sums.
template <typename Adding>
struct SumsMicro {
  static constexpr int kSums = Adding::kSums;
  static constexpr bool kOddBlocks = odd_blocks<Adding>();

  template <int kRows, int kPanelBlock, typename Product>
  static void block(const Product& p, int64_t row, int64_t panel) {
    typename Adding::Sum sums[kRows][kPanelBlock];
    float* const c = p.c + row * p.c_stride + panel * kPanelWidth;
    load_sums(sums, c, p.c_stride, p.accumulate);
    const auto* const a = p.a + row * p.a_stride;
    const BFloat16* const weights = p.panels + panel * p.panel_stride;
    if constexpr (requires { Adding::kFetches; }) {
      Adding::add(sums, a, weights, p.k, p, block_fetch<kRows, kOddBlocks>(p, row, panel));
    } else {
      Adding::add(sums, a, weights, p.k, p);
    }
    store_sums(sums, c, p.c_stride);
  }
};

/// A block of the product with panels in BF16 whose products are scaled group by group.
template <typename Adding, bool kZeros>
struct ScaledMicro {
  static constexpr int kSums = Adding::kSums;
  static constexpr bool kOddBlocks = odd_blocks<Adding>();

  template <int kRows, int kPanelBlock, typename A>
  static void block(const ScaledPanelProduct<A>& p, int64_t row, int64_t panel) {
    using V = typename Adding::Sum;
    float* const c = p.c + row * p.c_stride + panel * kPanelWidth;
    const A* const a = p.a + row * p.a_stride;
    const BFloat16* const weights = p.panels + panel * p.panel_stride;
    for (int64_t first = 0, group = 0; first < p.k; first += p.group_inputs, ++group) {
      V products[kRows][kPanelBlock];
      load_sums(products, c, p.c_stride, false);
      const int64_t inputs = p.k - first < p.group_inputs ? p.k - first : p.group_inputs;
      const BFloat16* const some = weights + first * kPanelWidth;
      if constexpr (requires { Adding::kFetches; }) {  // scaled panels were unpacked to a cache
        Adding::add(products, a + first, some, inputs, p, {reinterpret_cast<const char*>(some), 0});
      } else {
        Adding::add(products, a + first, some, inputs, p);
      }
      for (int j = 0; j < kPanelBlock; ++j) {
        const int64_t index = ((panel + j) * p.groups + group) * kPanelWidth;
        const V scale = V::load(p.scales + index);
        V zero = V::set(0.0f);
        if constexpr (kZeros) zero = V::load(p.zeros + index);
        for (int r = 0; r < kRows; ++r) {
          const V scaled =
              scaled_product<kZeros>(products[r][j], scale, zero, p.group_sums, (row + r) * p.groups + group);
          float* const to = c + r * p.c_stride + j * kPanelWidth;
          (p.accumulate || group > 0 ? V::load(to) + scaled : scaled).store(to);
        }
      }
    }
  }
};

/// The product with panels in F32 or F16: one multiply-add per weight, in the order of k.
template <typename V, typename Weight>
struct FloatMicro {
  static constexpr int kSums = V::kSums;
  static constexpr bool kOddBlocks = odd_blocks<V>();

  template <int kRows, int kPanelBlock>
  static void block(const PanelProduct<float, Weight>& p, int64_t row, int64_t panel) {
    V sums[kRows][kPanelBlock];
    float* const c = p.c + row * p.c_stride + panel * kPanelWidth;
    load_sums(sums, c, p.c_stride, p.accumulate);
    const float* const a = p.a + row * p.a_stride;
    const Weight* const weights = p.panels + panel * p.panel_stride;
    for (int64_t k = 0; k < p.k; ++k) {
      for (int j = 0; j < kPanelBlock; ++j) {
        const V w = V::load(weights + j * p.panel_stride + k * kPanelWidth);
        for (int r = 0; r < kRows; ++r) sums[r][j] = fma(V::set(a[r * p.a_stride + k]), w, sums[r][j]);
      }
    }
    store_sums(sums, c, p.c_stride);
  }
};

/// The product of one row with panels in BF16, whose pairs are widened to float: one multiply-add per weight,
/// in the order of k. Every instruction set that uses this gives the same bits. Meanwhile it asks for what
/// PanelProduct::ahead names.
template <typename V>
struct Bf16Adding {
  using Sum = V;
  static constexpr int kSums = V::kSums;
  /// The inputs for which memory is asked ahead at once.
  static constexpr int64_t kInputsAhead = 4;

  template <int kRows, int kPanelBlock, typename Product>
  VERBATIM_INLINE static void add(V (&sums)[kRows][kPanelBlock], const BFloat16* a, const BFloat16* weights,
                                  int64_t inputs, const Product& p) {
    for (int64_t k = 0; k < inputs; k += 2) {
      if (k % kInputsAhead == 0) {
        constexpr int64_t kBytes = kPanelBlock * kPanelWidth * int64_t{sizeof(BFloat16)};  // of an input
        const int64_t before = (weights - p.panels) * int64_t{sizeof(BFloat16)};
        p.ahead.fetch_with(before + k * kBytes, kInputsAhead * kBytes);
      }
      for (int j = 0; j < kPanelBlock; ++j) {
        V even;
        V odd;
        V::load_pairs(weights + j * p.panel_stride + k * kPanelWidth, &even, &odd);
        for (int r = 0; r < kRows; ++r) {
          // Read as one word: from two 16-bit loads GCC 12 makes vector loads that reach past the last row.
          uint32_t pair;
          __builtin_memcpy(&pair, a + r * p.a_stride + k, sizeof pair);
          sums[r][j] = fma_of_bf16(V::set(__builtin_bit_cast(float, pair << 16)), even, sums[r][j]);
          sums[r][j] = fma_of_bf16(V::set(__builtin_bit_cast(float, pair & 0xffff0000u)), odd, sums[r][j]);
        }
      }
    }
  }
};

/// The product of activations that are floats already with panels in BF16: with the bits of Bf16Adding, as
/// widening is exact. An activation for all lanes then is a load, which takes no time from the multipliers.
template <typename V>
struct WidenedAdding {
  using Sum = V;
  static constexpr int kSums = V::kSums;
  static constexpr bool kOddBlocks = odd_blocks<V>();
  static constexpr bool kFetches = true;  // add() takes a BlockFetch

  template <int kRows, int kPanelBlock>
  VERBATIM_INLINE static void add(V (&sums)[kRows][kPanelBlock], const float* a, const BFloat16* weights,
                                  int64_t inputs, const PanelProduct<float, BFloat16>& p, BlockFetch fetch) {
    const int64_t a_stride = p.a_stride;
    const int64_t panel_stride = p.panel_stride;
    for (int64_t k = 0; k < inputs; k += 2, fetch.from += fetch.step) {
      for (int j = 0; j < kPanelBlock; ++j) {
        const BFloat16* const pairs = weights + j * panel_stride + k * kPanelWidth;
        // Into the second cache: lines on their way to the first would hold up what is read from there.
        __builtin_prefetch(fetch.from + j * panel_stride * int64_t{sizeof(BFloat16)}, 0, 2);
        V even;
        V odd;
        V::load_pairs(pairs, &even, &odd);
        for (int r = 0; r < kRows; ++r) {
          sums[r][j] = fma_of_bf16(V::set(a[r * a_stride + k]), even, sums[r][j]);
        }
        if constexpr (requires { V::load_odd_behind(even, pairs); }) {
          odd = V::load_odd_behind(sums[kRows - 1][j], pairs);
        }
        for (int r = 0; r < kRows; ++r) {
          sums[r][j] = fma_of_bf16(V::set(a[r * a_stride + k + 1]), odd, sums[r][j]);
        }
      }
    }
  }
};

/// The number of activations that are widened at a time. They stay in the second cache while all panels meet
/// them.
inline constexpr int64_t kWidenedFloats = 24 * 1024;
/// The largest number of rows that are widened together.
inline constexpr int64_t kWidenedRows = 64;

/// Calls multiply(some rows of a product) with activations widened to float. The rows' sums wait in c while
/// the next inputs are widened, `step` or a multiple of it, so each is still summed in the order of k.
template <typename V, typename Multiply>
void widen_some(const PanelProduct<BFloat16, BFloat16>& p, int64_t step, Multiply&& multiply) {
  alignas(64) float widened[kWidenedFloats];
  for (int64_t row = 0; row < p.rows; row += kWidenedRows) {
    const int64_t rows = p.rows - row < kWidenedRows ? p.rows - row : kWidenedRows;
    const int64_t most = kWidenedFloats / rows / step * step;
    for (int64_t k = 0; k < p.k; k += most) {
      const int64_t inputs = p.k - k < most ? p.k - k : most;
      for (int64_t r = 0; r < rows; ++r) {
        const BFloat16* const from = p.a + (row + r) * p.a_stride + k;
        for (int64_t i = 0; i < inputs; i += kPanelWidth) V::load(from + i).store(widened + r * inputs + i);
      }
      const BFloat16* const behind = k + inputs < p.k      ? p.panels + (k + inputs) * kPanelWidth
                                     : row + rows < p.rows ? p.panels
                                                           : p.panels + p.panel_count * p.panel_stride;
      multiply(row, k,
               WidenedProduct{{.a = widened,
                               .a_stride = inputs,
                               .rows = rows,
                               .panels = p.panels + k * kPanelWidth,
                               .panel_stride = p.panel_stride,
                               .panel_count = p.panel_count,
                               .k = inputs,
                               .c = p.c + row * p.c_stride,
                               .c_stride = p.c_stride,
                               .accumulate = p.accumulate || k > 0,
                               .ahead = p.ahead,
                               .near = p.near},
                              behind});
    }
  }
}

template <typename V>
void panels_bf16(const PanelProduct<BFloat16, BFloat16>& product) {
  if (product.rows == 1) return for_each_block<SumsMicro<Bf16Adding<V>>>(product);
  widen_some<V>(product, kInnerStep, [](int64_t, int64_t, const WidenedProduct& some) {
    for_each_block<SumsMicro<WidenedAdding<V>>>(some);
  });
}

/// ScaledPanelProduct by blocks of Adding, for formats with and without zero points.
template <typename Adding, typename A>
void scaled_blocks(const ScaledPanelProduct<A>& product) {
  if (product.zeros != nullptr) {
    for_each_block<ScaledMicro<Adding, true>>(product);
  } else {
    for_each_block<ScaledMicro<Adding, false>>(product);
  }
}

template <typename V>
void scaled_panels(const ScaledPanelProduct<BFloat16>& product) {
  if (product.rows == 1) return scaled_blocks<Bf16Adding<V>>(product);
  widen_some<V>(product, product.group_inputs, [&](int64_t row, int64_t k, const WidenedProduct& some) {
    const int64_t group = k / product.group_inputs;
    const bool zeros = product.zeros != nullptr;
    scaled_blocks<WidenedAdding<V>>(
        ScaledPanelProduct<float>{some, product.group_inputs, product.scales + group * kPanelWidth,
                                  zeros ? product.zeros + group * kPanelWidth : nullptr, product.groups,
                                  zeros ? product.group_sums + row * product.groups + group : nullptr});
  });
}

template <typename V>
void panels_f16(const PanelProduct<float, Float16>& product) {
  for_each_block<FloatMicro<V, Float16>>(product);
}

template <typename V>
void panels_f32(const PanelProduct<float, float>& product) {
  for_each_block<FloatMicro<V, float>>(product);
}

}  // namespace verbatim::generic
