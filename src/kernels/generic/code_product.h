#pragma once

#include "kernels/kernel_table.h"

namespace verbatim::generic {

/// Products with the codes of quantized keys and values. `Dot` is the instruction set's part, as in
/// integer.h, with these additions:
///   kCodeStreams                    the number of panels that are multiplied side by side
///   kWholeBytes                     whether add() takes weights up to 255, or nibbles alone
///   merge(upper, lower, &b0, &b1)   if so: the codes of two quads from two planes of nibbles
///   add_shifted<bits>(sum, shifted), store(sum, out)
template <typename Dot, int kStorage>
struct CodeMicro {
  /// The number of planes that codes are multiplied in. Where dot products take nibbles alone, eight bits are
  /// two planes.
  static constexpr int kPlanes = kStorage != kCodesUpper && !Dot::kWholeBytes ? 2 : 1;
  using Bytes = typename Dot::Bytes;
  using Sum = typename Dot::Sum;
  using Partial = typename Dot::Partial;

  VERBATIM_INLINE static void load_plane(const uint8_t* codes, Bytes (&out)[2]) {
    const auto both = Dot::load(codes);
    out[0] = Dot::low_nibbles(both);
    out[1] = Dot::high_nibbles(both);
  }

  /// Loads the operands for quads 2 `block` and 2 `block` + 1 of a panel: [plane, the lower one last][quad].
  VERBATIM_INLINE static void load(const uint8_t* codes, const uint8_t* lower, int64_t block,
                                   Bytes (&out)[kPlanes][2]) {
    if constexpr (kStorage == kCodesBoth && kPlanes == 1) {
      Dot::merge(Dot::load(codes + block * 64), Dot::load(lower + block * 64), &out[0][0], &out[0][1]);
    } else if constexpr (kStorage == kCodesBytes) {
      const uint8_t* const from = codes + block * 128;
      if constexpr (kPlanes == 1) {
        out[0][0] = Dot::load(from);
        out[0][1] = Dot::load(from + 64);
      } else {
        for (int quad = 0; quad < 2; ++quad) {
          const auto bytes = Dot::load(from + quad * 64);
          out[0][quad] = Dot::high_nibbles(bytes);
          out[1][quad] = Dot::low_nibbles(bytes);
        }
      }
    } else {
      load_plane(codes + block * 64, out[0]);
      if constexpr (kStorage == kCodesBoth && kPlanes == 2) load_plane(lower + block * 64, out[1]);
    }
  }

  /// Multiplies kRows rows, from `row` on, with kPanelBlock panels, of which the first is `panel` and each of
  /// the others `apart` panels further on.
  template <int kRows, int kPanelBlock>
  static void block(const CodeProduct& p, int64_t row, int64_t panel, int64_t apart) {
    // [panel][row][plane][upper and lower byte of the row]
    Sum sums[kPanelBlock][kRows][kPlanes][2];
    for (auto& panel_sums : sums) {
      for (auto& row_sums : panel_sums) {
        for (auto& plane_sums : row_sums) plane_sums[0] = plane_sums[1] = Dot::start(0);
      }
    }
    const int64_t panel_bytes = p.k / kCodeTileInner * code_tile_bytes(kStorage);
    const int8_t* const a = p.a + row * 2 * p.k;
    const auto each_sum = [](auto&& work) __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int plane = 0; plane < kPlanes; ++plane) {
#pragma GCC unroll 2
          for (int byte = 0; byte < 2; ++byte) work(r, plane, byte);
        }
      }
    };
    for (int64_t step = 0; step < p.k / 16; ++step) {  // four quads: what a partial sum takes
      if (row == 0) {
        constexpr int64_t kBytes = kPanelBlock * (kStorage == kCodesBytes ? 256 : 128);
        const int64_t first = apart == 0 ? panel : panel * kPanelBlock;
        const int64_t at = first * panel_bytes + step * kBytes;
        p.ahead.fetch_with(at, kBytes);
        if constexpr (kStorage == kCodesBoth) p.ahead_lower.fetch_with(at, kBytes);
      }
      Partial partial[kPanelBlock][kRows][kPlanes][2];
#pragma GCC unroll 4
      for (int j = 0; j < kPanelBlock; ++j) {
        each_sum([&](int r, int plane, int byte) __attribute__((always_inline)) {
          partial[j][r][plane][byte] = Dot::open(sums[j][r][plane][byte]);
        });
      }
#pragma GCC unroll 2
      for (int64_t b = 2 * step; b < 2 * step + 2; ++b) {
#pragma GCC unroll 4
        for (int j = 0; j < kPanelBlock; ++j) {
          const int64_t offset = (panel + j * apart) * panel_bytes;
          Bytes weights[kPlanes][2];
          load(p.codes + offset, kStorage == kCodesBoth ? p.lower + offset : nullptr, b, weights);
          each_sum([&](int r, int plane, int byte) __attribute__((always_inline)) {
            const int8_t* const quads = a + (2 * r + byte) * p.k + b * 8;
            Partial& sum = partial[j][r][plane][byte];
            sum = Dot::add(Dot::add(sum, weights[plane][0], quads), weights[plane][1], quads + 4);
          });
        }
      }
#pragma GCC unroll 4
      for (int j = 0; j < kPanelBlock; ++j) {
        each_sum([&](int r, int plane, int byte) __attribute__((always_inline)) {
          Sum& sum = sums[j][r][plane][byte];
          sum = Dot::close(sum, partial[j][r][plane][byte]);
        });
      }
    }
    for (int j = 0; j < kPanelBlock; ++j) {
      for (int r = 0; r < kRows; ++r) {
        const auto& planes = sums[j][r];
        Sum sum = Dot::template add_shifted<8>(planes[kPlanes - 1][1], planes[kPlanes - 1][0]);
        if constexpr (kPlanes == 2) {
          sum = Dot::template add_shifted<4>(sum, Dot::template add_shifted<8>(planes[0][1], planes[0][0]));
        }
        Dot::store(sum, p.c + (row + r) * p.c_stride + (panel + j * apart) * kPanelWidth);
      }
    }
  }
};

template <typename Dot, int kStorage>
void code_product(const CodeProduct& p) {
  using Micro = CodeMicro<Dot, kStorage>;
  const auto all_rows = [&]<int kPanels>(int64_t panel, int64_t apart) {
    int64_t row = 0;
    for (; row + 4 <= p.rows; row += 4) Micro::template block<4, kPanels>(p, row, panel, apart);
    if (row + 2 <= p.rows) {
      Micro::template block<2, kPanels>(p, row, panel, apart);
      row += 2;
    }
    if (row < p.rows) Micro::template block<1, kPanels>(p, row, panel, apart);
  };
  const auto all_panels = [&]<int kPanels>() {
    const int64_t share = p.panel_count / kPanels;
    for (int64_t panel = 0; panel < share; ++panel) all_rows.template operator()<kPanels>(panel, share);
    for (int64_t panel = share * kPanels; panel < p.panel_count; ++panel) {
      all_rows.template operator()<1>(panel, 0);
    }
  };
  // With more rows there are registers for the sums of fewer panels.
  constexpr int kStreams = Dot::kCodeStreams;
  if (p.rows < 4) {
    all_panels.template operator()<kStreams>();
  } else {
    all_panels.template operator()<(kStreams + 1) / 2>();
  }
}

template <typename Dot>
void fill_code_product(decltype(KernelTable::code_product)& table) {
  table[kCodesUpper] = code_product<Dot, kCodesUpper>;
  table[kCodesBoth] = code_product<Dot, kCodesBoth>;
  table[kCodesBytes] = code_product<Dot, kCodesBytes>;
}

}  // namespace verbatim::generic
