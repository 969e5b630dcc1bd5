#include "kernels/generic/squeeze.h"
#include "kernels/amx/bf16_blocks.h"
#include "kernels/amx/products.h"
#include "kernels/amx/words.h"
#include "kernels/generic/tiles.h"

namespace verbatim::amx {

namespace {

// The columns of a panel are the rows of the first operand here, because looked-up weights come out column by
// column; the activations are the second operand, in pairs, and the result is the transpose. Sums are
// in tiles 0..3 (2 and 3 are of the rows from the seventeenth on), weights in 4 and 5, activations in 6
// and 7.

constexpr int64_t kMostRows = 32;

/// Lays up to 32 rows of activations out as [k/2][rows][2], where each 16 rows are a second operand.
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

/// Up to 16 rows, or 32 with kSecond, by kPanels panels at a time, each a stream of its own. Groups are
/// unpacked one ahead of those that are multiplied, a few columns between every two tile products.
template <typename Codes, int kPanels, bool kSecond>
class Streams {
 public:
  /// `pairs` are the activations from `row` on, [k/2][rows][2].
  Streams(const SqueezeProduct& p, int64_t row, int64_t rows, const uint32_t* pairs)
      : p_(p), row_(row), rows_(rows), pairs_(pairs) {}

  /// Multiplies with panels first .. first + kPanels · share - 1.
  void run(int64_t first, int64_t share) {
    int half = 0;
    begin(first, share);
    for (int64_t t = 0; t < Codes::kSubtiles; ++t) {
      each_panel([&]<int j>() __attribute__((always_inline)) { unpack_columns(j, t, half); });
    }
    next_group();
    for (int64_t panel = first; panel < first + share; ++panel) {
      each_panel([]<int j>() __attribute__((always_inline)) {
        tile_zero<j>();
        if constexpr (kSecond) tile_zero<2 + j>();
      });
      for (int64_t group = 0; group < p_.groups; ++group) {
        const bool last = group + 1 == p_.groups;
        const bool more = !last || panel + 1 < first + share;
        if (last && more) begin(panel + 1, share);
        for (int64_t t = 0; t < Codes::kSubtiles; ++t) {
          load_activations(group * Codes::kSubtiles + t);
          each_panel([&]<int j>() __attribute__((always_inline)) {
            if (more) unpack_columns(j, t, half ^ 1);
            multiply<j>(stage_.words[half][j] + t * kTileElements);
          });
        }
        if (more) next_group();
        half ^= 1;
      }
      each_panel([&]<int j>() __attribute__((always_inline)) { store<j>(panel + j * share); });
    }
  }

 private:
  static constexpr int64_t kColumnsAtATime = kPanelWidth / Codes::kSubtiles;
  static constexpr int64_t kGroupBytes = kPanelWidth * Codes::kBytes;
  static constexpr int64_t kPrefetchBytes = 2048;

  template <typename Work>
  VERBATIM_INLINE static void each_panel(Work&& work) {
    static_assert(kPanels == 1 || kPanels == 2);
    work.template operator()<0>();
    if constexpr (kPanels > 1) work.template operator()<1>();
  }

  /// Begins to unpack the panels panel + j · share.
  void begin(int64_t panel, int64_t share) {
    for (int j = 0; j < kPanels; ++j) {
      const int64_t at = panel + j * share;
      codes_[j] = p_.codes + at * p_.groups * kGroupBytes;
      for (int64_t column = 0; column < kPanelWidth; ++column) {
        tables_[j][column] = generic::squeeze_table<Codes>(p_, at * kPanelWidth + column);
      }
    }
  }
  VERBATIM_INLINE void next_group() {
    for (int j = 0; j < kPanels; ++j) codes_[j] += kGroupBytes;
  }
  /// Unpacks the share of the panel's columns that belongs to subtile t of the group that is being
  /// multiplied.
  VERBATIM_INLINE void unpack_columns(int j, int64_t t, int half) {
#pragma GCC unroll 8
    for (int64_t column = t * kColumnsAtATime; column < (t + 1) * kColumnsAtATime; ++column) {
      const uint8_t* const codes = codes_[j] + column * Codes::kBytes;
      generic::prefetch_bytes<Codes::kBytes>(codes + kPrefetchBytes);
      generic::unpack_squeezed<Codes>(codes, tables_[j][column], stage_.words[half][j] + column * kInnerStep,
                                      kTileElements);
    }
  }
  VERBATIM_INLINE void load_activations(int64_t tile) const {
    const uint32_t* const a = pairs_ + tile * 16 * rows_;
    tile_load<6>(a, rows_ * 4);
    if constexpr (kSecond) tile_load<7>(a + 16, rows_ * 4);
  }
  template <int kPanel>
  VERBATIM_INLINE static void multiply(const uint16_t* weights) {
    constexpr int kWeights = 4 + kPanel;
    tile_load<kWeights>(weights, 64);
    tile_dot_bf16<kPanel, kWeights, 6>();
    if constexpr (kSecond) tile_dot_bf16<2 + kPanel, kWeights, 7>();
  }
  template <int kPanel>
  VERBATIM_INLINE void store(int64_t panel) const {
    float* const c = p_.c + row_ * p_.c_stride + panel * kPanelWidth;
    store_transposed<kPanel>(c, p_.c_stride, kSecond ? 16 : rows_);
    if constexpr (kSecond) store_transposed<2 + kPanel>(c + 16 * p_.c_stride, p_.c_stride, rows_ - 16);
  }

  struct alignas(4096) Stage {
    uint16_t words[2][kPanels][Codes::kSubtiles * kTileElements];
  };

  SqueezeProduct p_;
  int64_t row_;
  int64_t rows_;
  const uint32_t* pairs_;
  const uint8_t* codes_[kPanels];
  typename Codes::Words::Table tables_[kPanels][kPanelWidth];
  Stage stage_;
};

/// Two panels side by side: with more, both halves of the stage would fill the first-level cache.
template <typename Codes, bool kSecond>
void panels(const SqueezeProduct& p, int64_t row, int64_t rows, const uint32_t* pairs) {
  configure(static_cast<int>(rows));
  constexpr int kPanels = 2;
  const int64_t share = p.panel_count / kPanels;
  if (share > 0) Streams<Codes, kPanels, kSecond>(p, row, rows, pairs).run(0, share);
  const int64_t done = share * kPanels;
  if (done < p.panel_count) Streams<Codes, 1, kSecond>(p, row, rows, pairs).run(done, p.panel_count - done);
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
  product<generic::Squeeze3<Words>>(p);
}
void squeeze4(const SqueezeProduct& p) {
  product<generic::Squeeze4<Words>>(p);
}

}  // namespace verbatim::amx
