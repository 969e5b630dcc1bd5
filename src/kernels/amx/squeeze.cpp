#include "kernels/generic/squeeze.h"
#include "kernels/amx/bf16_blocks.h"
#include "kernels/amx/products.h"
#include "kernels/avx512/words.h"

namespace verbatim::amx {

namespace {

// The columns of a panel are the rows of the first operand here, because looked-up weights come out column by
// column; the activations are the second operand, in pairs, and the result is the transpose. Sums are in
// tiles 0..3, weights in 4 and 5, activations in 6 and 7.

constexpr int64_t kMostRows = 32;

/// Up to 32 rows of activations as [k/2][rows][2], each 16 rows a second operand.
void transpose_pairs(const SqueezeProduct& p, int64_t row, int64_t rows, int64_t k, uint32_t* out) {
  for (int64_t r = 0; r < rows; ++r) {
    const BFloat16* const from = p.a + (row + r) * p.a_stride;
    for (int64_t pair = 0; pair < k / 2; ++pair) {
      __builtin_memcpy(out + pair * rows + r, from + pair * 2, sizeof *out);
    }
  }
}

void configure(int rows) {
  TileConfig config;
  const int first = rows < 16 ? rows : 16;
  const int second = rows > 16 ? rows - 16 : first;
  for (int tile = 0; tile < 8; ++tile) config.set(tile, 16, 64);
  config.set(0, 16, first * 4);
  config.set(1, 16, first * 4);
  config.set(2, 16, second * 4);
  config.set(3, 16, second * 4);
  config.set(6, 16, first * 4);
  config.set(7, 16, second * 4);
  config.load();
}

template <int kTile>
void store_transposed(float* c, int64_t c_stride, int64_t rows) {
  alignas(64) float sums[256];
  tile_store<kTile>(sums, 64);
  for (int64_t column = 0; column < kPanelWidth; ++column) {
    for (int64_t r = 0; r < rows; ++r) c[r * c_stride + column] = sums[column * 16 + r];
  }
}

/// kPanels ≤ 2 panels by up to 16 rows, or up to 32 with kSecond.
template <typename Codes, int kPanels, bool kSecond>
void block(const SqueezeProduct& p, int64_t panel, int64_t row, int64_t rows, const uint32_t* pairs) {
  constexpr int64_t kWords = Codes::kSubtiles * kTileElements;
  alignas(4096) uint16_t unpacked[2][kPanels][kWords];
  // The columns' tables once, not once a group.
  typename Codes::Words::Table tables[kPanels][kPanelWidth];
  for (int j = 0; j < kPanels; ++j) {
    for (int column = 0; column < kPanelWidth; ++column) {
      tables[j][column] = generic::squeeze_table<Codes>(p, (panel + j) * kPanelWidth + column);
    }
  }
  const auto unpack = [&](int64_t group) __attribute__((always_inline)) {
    for (int j = 0; j < kPanels; ++j) {
      const uint8_t* const codes = p.codes + ((panel + j) * p.groups + group) * kPanelWidth * Codes::kBytes;
      for (int column = 0; column < kPanelWidth; ++column) {
        __builtin_prefetch(codes + column * Codes::kBytes + 2 * kPanelWidth * Codes::kBytes);
        Codes::unpack(codes + column * Codes::kBytes, tables[j][column], unpacked[group % 2][j] + column * 32,
                      kTileElements);
      }
    }
  };
  tile_zero<0>();
  if constexpr (kPanels > 1) tile_zero<1>();
  if constexpr (kSecond) {
    tile_zero<2>();
    if constexpr (kPanels > 1) tile_zero<3>();
  }
  unpack(0);
  for (int64_t group = 0; group < p.groups; ++group) {
    if (group + 1 < p.groups) unpack(group + 1);
    for (int64_t t = 0; t < Codes::kSubtiles; ++t) {
      const uint32_t* const a = pairs + (group * Codes::kSubtiles + t) * 16 * rows;
      tile_load<6>(a, rows * 4);
      tile_load<4>(unpacked[group % 2][0] + t * kTileElements, 64);
      tile_dot_bf16<0, 4, 6>();
      if constexpr (kPanels > 1) {
        tile_load<5>(unpacked[group % 2][1] + t * kTileElements, 64);
        tile_dot_bf16<1, 5, 6>();
      }
      if constexpr (kSecond) {
        tile_load<7>(a + 16, rows * 4);
        tile_dot_bf16<2, 4, 7>();
        if constexpr (kPanels > 1) tile_dot_bf16<3, 5, 7>();
      }
    }
  }
  float* const c = p.c + row * p.c_stride + panel * kPanelWidth;
  const int64_t first = rows < 16 ? rows : 16;
  store_transposed<0>(c, p.c_stride, first);
  if constexpr (kPanels > 1) store_transposed<1>(c + kPanelWidth, p.c_stride, first);
  if constexpr (kSecond) {
    store_transposed<2>(c + 16 * p.c_stride, p.c_stride, rows - 16);
    if constexpr (kPanels > 1) store_transposed<3>(c + 16 * p.c_stride + kPanelWidth, p.c_stride, rows - 16);
  }
}

template <typename Codes, bool kSecond>
void panels(const SqueezeProduct& p, int64_t row, int64_t rows, const uint32_t* pairs) {
  configure(static_cast<int>(rows));
  int64_t panel = 0;
  for (; panel + 2 <= p.panel_count; panel += 2) block<Codes, 2, kSecond>(p, panel, row, rows, pairs);
  for (; panel < p.panel_count; ++panel) block<Codes, 1, kSecond>(p, panel, row, rows, pairs);
}

template <typename Codes>
void product(const SqueezeProduct& p) {
  const int64_t k = p.groups * Codes::kSubtiles * kInnerStep;
  uint32_t* const pairs = reinterpret_cast<uint32_t*>(p.scratch);
  for (int64_t row = 0; row < p.rows; row += kMostRows) {
    const int64_t rows = p.rows - row < kMostRows ? p.rows - row : kMostRows;
    transpose_pairs(p, row, rows, k, pairs);
    rows > 16 ? panels<Codes, true>(p, row, rows, pairs) : panels<Codes, false>(p, row, rows, pairs);
  }
  _tile_release();
}

}  // namespace

void squeeze3(const SqueezeProduct& p) {
  product<generic::Squeeze3<avx512::U16x32>>(p);
}
void squeeze4(const SqueezeProduct& p) {
  product<generic::Squeeze4<avx512::U16x32>>(p);
}

}  // namespace verbatim::amx
