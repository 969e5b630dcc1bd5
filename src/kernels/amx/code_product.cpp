#include "kernels/amx/bf16_blocks.h"
#include "kernels/amx/products.h"
#include "kernels/amx/tiles.h"
#include "kernels/avx512/vnni_dot.h"
#include "kernels/kernel_table.h"

namespace verbatim::amx {

namespace {

// A query row is two rows of bytes, one after the other in the sums as in the rows.

constexpr int64_t kTileBytes = 1024;

/// Unpacks the tiles of a storage of codes to bytes.
template <int kStorage>
struct CodeTiles {
  /// Tiles of bytes are multiplied where they lie.
  static constexpr bool kUnpacked = kStorage != kCodesBytes;
  static constexpr int64_t kBytes = code_tile_bytes(kStorage);

  const CodeProduct& p;

  VERBATIM_INLINE int64_t place(int64_t panel, int64_t tile) const {
    return (panel * (p.k / kCodeTileInner) + tile) * kBytes;
  }
  VERBATIM_INLINE void unpack(int64_t panel, int64_t tile, uint8_t* out) const {
    const int64_t at = place(panel, tile);
    p.ahead.fetch_with(at, kBytes);
    if constexpr (kStorage == kCodesBytes) return;
    if constexpr (kStorage == kCodesBoth) p.ahead_lower.fetch_with(at, kBytes);
    const uint8_t* const codes = p.codes + at;
    const uint8_t* const lower = kStorage == kCodesBoth ? p.lower + at : nullptr;
    for (int64_t block = 0; block < 8; ++block) {
      const __m512i upper_codes = _mm512_loadu_si512(codes + block * 64);
      __m512i first;
      __m512i second;
      if constexpr (kStorage == kCodesUpper) {
        first = avx512::VnniDot::low_nibbles(upper_codes);
        second = avx512::VnniDot::high_nibbles(upper_codes);
      } else {
        avx512::VnniDot::merge(upper_codes, _mm512_loadu_si512(lower + block * 64), &first, &second);
      }
      _mm512_store_si512(out + block * 128, first);
      _mm512_store_si512(out + block * 128 + 64, second);
    }
  }
  /// The place of a tile as bytes: the stage that it was unpacked to or, if it is stored as bytes, its own
  /// place.
  VERBATIM_INLINE const uint8_t* bytes(int64_t panel, int64_t tile, const uint8_t* stage) const {
    if constexpr (kUnpacked) return stage;
    return p.codes + place(panel, tile);
  }
};

/// Computes c = 256 · upper + lower for `rows` rows of a panel.
VERBATIM_INLINE void combine(const int32_t* sums, int64_t rows, int32_t* c, int64_t c_stride) {
  for (int64_t r = 0; r < rows; ++r) {
    const __m512i upper = _mm512_load_si512(sums + r * 32);
    const __m512i lower = _mm512_load_si512(sums + r * 32 + 16);
    _mm512_storeu_si512(c + r * c_stride, _mm512_add_epi32(_mm512_slli_epi32(upper, 8), lower));
  }
}

/// Page aligned, so that its stores are not taken for what the loads of codes wait for more often than need
/// be.
template <int kSets, int kTiles>
struct alignas(4096) Stage {
  uint8_t bytes[2][kSets][kTileBytes];
  int32_t sums[kTiles][256];
};

/// Up to eight rows, a tile of bytes, by groups of kPanels panels. While a tile of each is multiplied the
/// next ones are unpacked.
template <int kStorage, int kPanels>
void few_rows(const CodeProduct& p, int64_t row, int64_t rows, int64_t first, int64_t end) {
  const CodeTiles<kStorage> codes{p};
  const int64_t tiles = p.k / kCodeTileInner;
  const int8_t* const a = p.a + row * 2 * p.k;
  Stage<kPanels, kPanels> stage;
  const auto each = [](auto&& work) __attribute__((always_inline)) {
    work.template operator()<0>();
    if constexpr (kPanels > 1) {
      work.template operator()<1>();
    }
  };
  for (int j = 0; j < kPanels; ++j) codes.unpack(first + j, 0, stage.bytes[0][j]);
  int half = 0;
  for (int64_t panel = first; panel < end; panel += kPanels) {
    each([]<int kPanel>() __attribute__((always_inline)) { tile_zero<kPanel>(); });
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const bool last = tile + 1 == tiles;
      const int64_t next_panel = last ? panel + kPanels : panel;
      const int64_t next_tile = last ? 0 : tile + 1;
      tile_load<4>(a + tile * kCodeTileInner, p.k);
      each([&]<int kPanel>() __attribute__((always_inline)) {
        constexpr int kWeights = 5 + kPanel;
        if (next_panel < end) codes.unpack(next_panel + kPanel, next_tile, stage.bytes[half ^ 1][kPanel]);
        tile_load<kWeights>(codes.bytes(panel + kPanel, tile, stage.bytes[half][kPanel]), 64);
        tile_dot_int8<kPanel, 4, kWeights, true>();
      });
      half ^= 1;
    }
    each([&]<int kPanel>() __attribute__((always_inline)) { tile_store<kPanel>(stage.sums[kPanel], 64); });
    for (int j = 0; j < kPanels; ++j) {
      combine(stage.sums[j], rows, p.c + row * p.c_stride + (panel + j) * kPanelWidth, p.c_stride);
    }
  }
}

/// Multiplies kTiles tiles of rows with one panel after the other.
template <int kStorage, int kTiles>
void many_rows(const CodeProduct& p, int64_t row, int64_t rows) {
  const CodeTiles<kStorage> codes{p};
  const int64_t tiles = p.k / kCodeTileInner;
  const int8_t* const a = p.a + row * 2 * p.k;
  Stage<1, kTiles> stage;
  const auto each = [](auto&& work) __attribute__((always_inline)) {
    work.template operator()<0>();
    work.template operator()<1>();
    if constexpr (kTiles > 2) work.template operator()<2>();
    if constexpr (kTiles > 3) work.template operator()<3>();
    if constexpr (kTiles > 4) work.template operator()<4>();
  };
  codes.unpack(0, 0, stage.bytes[0][0]);
  int half = 0;
  for (int64_t panel = 0; panel < p.panel_count; ++panel) {
    each([]<int kTile>() __attribute__((always_inline)) { tile_zero<kTile>(); });
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const bool last = tile + 1 == tiles;
      const int64_t next_panel = last ? panel + 1 : panel;
      if (next_panel < p.panel_count) codes.unpack(next_panel, last ? 0 : tile + 1, stage.bytes[half ^ 1][0]);
      tile_load<5>(codes.bytes(panel, tile, stage.bytes[half][0]), 64);
      each([&]<int kTile>() __attribute__((always_inline)) {
        constexpr int kA = kTile + 1 == kTiles ? 7 : 6;
        tile_load<kA>(a + kTile * kTileRows * p.k + tile * kCodeTileInner, p.k);
        tile_dot_int8<kTile, kA, 5, true>();
      });
      half ^= 1;
    }
    each([&]<int kTile>() __attribute__((always_inline)) { tile_store<kTile>(stage.sums[kTile], 64); });
    combine(stage.sums[0], rows, p.c + row * p.c_stride + panel * kPanelWidth, p.c_stride);
  }
}

template <int kStorage>
void product(const CodeProduct& p) {
  constexpr int64_t kMostRows = kMostTallTiles * kTileRows / 2;
  for (int64_t row = 0; row < p.rows; row += kMostRows) {
    const int64_t rows = p.rows - row < kMostRows ? p.rows - row : kMostRows;
    const RowTiles shape = row_tiles(2 * rows);
    if (shape.tiles == 1) {
      configure_wide(shape.last_rows);
      const int64_t paired = p.panel_count / 2 * 2;
      if (paired > 0) few_rows<kStorage, 2>(p, row, rows, 0, paired);
      if (paired < p.panel_count) few_rows<kStorage, 1>(p, row, rows, paired, p.panel_count);
      continue;
    }
    configure_tall(shape);
    switch (shape.tiles) {
      case 2:
        many_rows<kStorage, 2>(p, row, rows);
        break;
      case 3:
        many_rows<kStorage, 3>(p, row, rows);
        break;
      case 4:
        many_rows<kStorage, 4>(p, row, rows);
        break;
      default:
        many_rows<kStorage, 5>(p, row, rows);
        break;
    }
  }
  _tile_release();
}

}  // namespace

void code_product_upper(const CodeProduct& p) {
  product<kCodesUpper>(p);
}
void code_product_both(const CodeProduct& p) {
  product<kCodesBoth>(p);
}
void code_product_bytes(const CodeProduct& p) {
  product<kCodesBytes>(p);
}

}  // namespace verbatim::amx
