#include "kernels/amx/bf16_blocks.h"
#include "kernels/amx/products.h"
#include "kernels/amx/scaled_codes.h"
#include "kernels/avx512/vector.h"

namespace verbatim::amx {

namespace {

/// A scale group of a panel.
struct GroupPlace {
  int64_t panel;  ///< counted from the first of all
  int64_t group;
};

/// The common part of products of up to 80 rows, for all ways of blocking rows and panels.
template <typename Weights>
class Scaling {
 public:
  explicit Scaling(const ScaledProduct& p) : p_(p) {}

  int64_t tiles() const { return p_.tiles.weights.tiles; }
  int64_t groups() const { return (tiles() + Weights::kGroupTiles - 1) / Weights::kGroupTiles; }
  typename Weights::Place codes(int64_t panel, int64_t tile) const {
    return Weights::place(p_.tiles.weights, panel * tiles() + tile);
  }

  /// Scales the products [rows][16] of a group and adds them to `sums`, [rows][16]; after the last group
  /// writes the sums to c.
  VERBATIM_INLINE void add(GroupPlace at, const float* products, float* sums) const {
    const int64_t index = at.panel * groups() + at.group;
    const Float16* const scales = reinterpret_cast<const Float16*>(p_.tiles.weights.scales);
    __builtin_prefetch(scales + index * kPanelWidth + kScalesAhead);
    generic::add_scaled_group<avx512::F32x16, Weights::kZeros>({
        .products = products,
        .products_stride = kPanelWidth,
        .rows = p_.tiles.rows,
        .scales = scales + index * kPanelWidth,
        .zeros = Weights::kZeros ? p_.zeros + index * kPanelWidth : nullptr,
        .group_sums = Weights::kZeros ? p_.group_sums + at.group : nullptr,
        .group_sums_stride = groups(),
        .c = sums,
        .c_stride = kPanelWidth,
        .accumulate = at.group > 0,
    });
    if (at.group + 1 < groups()) return;
    float* const c = p_.tiles.c + (at.panel - p_.tiles.first_panel) * kPanelWidth;
    for (int64_t r = 0; r < p_.tiles.rows; ++r) {
      _mm512_storeu_ps(c + r * p_.tiles.c_stride, _mm512_load_ps(sums + r * kPanelWidth));
    }
  }

 private:
  static constexpr int64_t kScalesAhead = 64;

  ScaledProduct p_;
};

/// Up to 16 rows by kStreams panels side by side, far apart, because a core that reads one place after the
/// other waits for the memory most of the time. Unpacking is a tile ahead of multiplying, and scaling a group
/// behind it, so that none waits for what was just written.
template <typename Weights, int kStreams>
class Wide {
  static_assert(kStreams == 1 || kStreams == 2);

 public:
  /// `a` is [tile][rows][32].
  Wide(const ScaledProduct& p, const BFloat16* a) : scaling_(p), a_(a), a_tile_(p.tiles.rows * kInnerStep) {}

  /// Multiplies with panels first .. first + kStreams · share - 1.
  void run(int64_t first, int64_t share) {
    const int64_t tiles = scaling_.tiles();
    for (int j = 0; j < kStreams; ++j) codes_[j] = scaling_.codes(first + j * share, 0);
    for (int j = 0; j < kStreams; ++j) unpack_next(j, 0);
    int half = 0;
    GroupPlace before{-1, 0};
    for (int64_t panel = first; panel < first + share; ++panel) {
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const bool more = tile + 1 < tiles || panel + 1 < first + share;
        const bool begins = tile % Weights::kGroupTiles == 0;
        const bool ends = tile % Weights::kGroupTiles == Weights::kGroupTiles - 1 || tile + 1 == tiles;
        const int64_t group = tile / Weights::kGroupTiles;
        float* const products = stage_.products[buffer_];
        const auto each = [&]<int kStream>() __attribute__((always_inline)) {
          if constexpr (kStream < kStreams) {
            if (more) unpack_next(kStream, half ^ 1);
            if constexpr (kStream == 0) tile_load<4>(a_ + tile * a_tile_, kInnerStep * 2);
            if (begins) tile_zero<kStream>();
            constexpr int kWeights = 5 + kStream;
            tile_load<kWeights>(stage_.words[half][kStream], 64);
            tile_dot_bf16<kStream, 4, kWeights>();
            if (ends) tile_store<kStream>(products + kStream * kTileSums, 64);
          }
        };
        each.template operator()<0>();
        each.template operator()<1>();
        half ^= 1;
        if (!ends) continue;
        buffer_ ^= 1;
        if (before.panel >= 0) add(before, share);
        before = {panel, group};
      }
    }
    buffer_ ^= 1;
    add(before, share);
  }

 private:
  static constexpr int64_t kTileSums = kTileRows * kPanelWidth;

  VERBATIM_INLINE void unpack_next(int stream, int half) {
    Weights::unpack(codes_[stream], stage_.words[half][stream]);
    codes_[stream].next();
  }
  /// The group whose products are in the buffer that is filled next.
  VERBATIM_INLINE void add(GroupPlace at, int64_t share) {
    for (int j = 0; j < kStreams; ++j) {
      scaling_.add({at.panel + j * share, at.group}, stage_.products[buffer_] + j * kTileSums,
                   stage_.sums + j * kTileSums);
    }
  }

  /// Page aligned, so that its stores are not taken for what the loads of weights wait for more often than
  /// need be.
  struct alignas(4096) Stage {
    uint16_t words[2][kStreams][kTileElements];
    float products[2][kStreams * kTileSums];
    float sums[kStreams * kTileSums];
  };

  Scaling<Weights> scaling_;
  const BFloat16* a_;
  int64_t a_tile_;
  typename Weights::Place codes_[kStreams];
  int buffer_ = 0;
  Stage stage_;
};

/// Multiplies up to 80 rows with one panel after the other. Unpacking is ahead of multiplying, and scaling
/// behind it, as in the class above.
template <typename Weights, int kTiles>
class Tall {
 public:
  explicit Tall(const ScaledProduct& p) : p_(p), scaling_(p) {}

  void run() {
    for (int64_t j = 0; j < p_.tiles.panel_count; ++j) panel(p_.tiles.first_panel + j);
  }

 private:
  void panel(int64_t panel) {
    const int64_t tiles = scaling_.tiles();
    const int64_t groups = scaling_.groups();
    unpack(panel, 0);
    for (int64_t group = 0; group < groups; ++group) {
      if (group + 1 < groups) unpack(panel, group + 1);
      const int64_t begin = group * Weights::kGroupTiles;
      const int64_t end = begin + Weights::kGroupTiles < tiles ? begin + Weights::kGroupTiles : tiles;
      begin_tall<kTiles>(nullptr, 0, false);
      for (int64_t tile = begin; tile < end; ++tile) {
        step_tall<kTiles>(
            p_.tiles.a + tile * kInnerStep, p_.tiles.a_stride,
            reinterpret_cast<const BFloat16*>(stage_.words[group % 2] + (tile - begin) * kTileElements));
      }
      end_tall<kTiles>(stage_.products[group % 2], kPanelWidth);
      if (group > 0) scaling_.add({panel, group - 1}, stage_.products[(group - 1) % 2], stage_.sums);
    }
    scaling_.add({panel, groups - 1}, stage_.products[(groups - 1) % 2], stage_.sums);
  }

  VERBATIM_INLINE void unpack(int64_t panel, int64_t group) {
    const int64_t begin = group * Weights::kGroupTiles;
    for (int64_t t = 0; t < Weights::kGroupTiles && begin + t < scaling_.tiles(); ++t) {
      Weights::unpack(scaling_.codes(panel, begin + t), stage_.words[group % 2] + t * kTileElements);
    }
  }

  struct alignas(4096) Stage {
    uint16_t words[2][Weights::kGroupTiles * kTileElements];
    float products[2][kTiles * kTileRows * kPanelWidth];
    float sums[kTiles * kTileRows * kPanelWidth];
  };

  ScaledProduct p_;
  Scaling<Weights> scaling_;
  Stage stage_;
};

template <typename Weights>
void one_row_tile(const ScaledProduct& p) {
  configure_wide(static_cast<int>(p.tiles.rows));
  const BFloat16* const a = gather_rows(p.tiles);
  constexpr int kStreams = 2;
  const int64_t share = p.tiles.panel_count / kStreams;
  const int64_t done = share * kStreams;
  if (share > 0) Wide<Weights, kStreams>(p, a).run(p.tiles.first_panel, share);
  if (done < p.tiles.panel_count) {
    Wide<Weights, 1>(p, a).run(p.tiles.first_panel + done, p.tiles.panel_count - done);
  }
}

template <typename Weights>
void few_rows(const ScaledProduct& p) {
  const RowTiles rows = row_tiles(p.tiles.rows);
  if (rows.tiles == 1) return one_row_tile<Weights>(p);
  configure_tall(rows);
  switch (rows.tiles) {
    case 2:
      return Tall<Weights, 2>(p).run();
    case 3:
      return Tall<Weights, 3>(p).run();
    case 4:
      return Tall<Weights, 4>(p).run();
    default:
      return Tall<Weights, 5>(p).run();
  }
}

template <TileReading kReading>
void multiply(const ScaledProduct& p) {
  if (p.tiles.tiled != nullptr) return scaled_many_rows(p);
  constexpr int64_t kFewRows = kMostTallTiles * kTileRows;
  const int64_t groups = Scaling<Codes<kReading>>(p).groups();
  for (int64_t row = 0; row < p.tiles.rows; row += kFewRows) {
    ScaledProduct block = p;
    block.tiles.a += row * p.tiles.a_stride;
    block.tiles.c += row * p.tiles.c_stride;
    block.tiles.rows = p.tiles.rows - row < kFewRows ? p.tiles.rows - row : kFewRows;
    if (p.group_sums != nullptr) block.group_sums += row * groups;
    few_rows<Codes<kReading>>(block);
  }
  _tile_release();
}

}  // namespace

void scaled_product(const ScaledProduct& p) {
  switch (p.tiles.reading) {
    case kTileInt4:
      return multiply<kTileInt4>(p);
    case kTileInt4Asymmetric:
      return multiply<kTileInt4Asymmetric>(p);
    case kTileQ8_0:
      return multiply<kTileQ8_0>(p);
    default:
      return multiply<kTileInt8>(p);
  }
}

}  // namespace verbatim::amx
