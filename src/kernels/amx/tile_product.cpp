#include <type_traits>

#include "kernels/amx/bf16_blocks.h"
#include "kernels/amx/bf16_streams.h"
#include "kernels/amx/escaped_weights.h"
#include "kernels/amx/full_tiles.h"
#include "kernels/amx/products.h"
#include "kernels/amx/streams.h"
#include "kernels/amx/words.h"
#include "kernels/generic/tiles.h"

namespace verbatim::amx {

namespace {

/// A Source (streams.h) of the tiles of a reading.
template <typename Tile, bool kEscaped>
struct TileSource {
  static constexpr int64_t kSpareWords = kEscaped ? EscapedWeightReader::kSpareWords : 0;
  struct Nothing {};
  using Position = std::conditional_t<kEscaped, EscapedWeightReader, Nothing>;

  TilePanels panels;
  int64_t end;  // of the tiles of all panels of the product

  Position start(generic::TilePlace place) const {
    if constexpr (kEscaped) {
      return {panels.escaped, place.index, first_escaped(place.panel)};
    } else {
      return {};
    }
  }
  uint64_t first_escaped(int64_t panel) const { return kEscaped ? panels.escaped.starts[panel] : 0; }
  VERBATIM_INLINE void unpack_tile(uint64_t& escaped, generic::TilePlace place, uint16_t* out) const {
    Tile::prefetch(panels, place.index + generic::kPrefetchTiles);
    Tile::unpack(panels, place, out);
    if constexpr (kEscaped) {
      generic::apply_tile_escaped_weights(panels.escaped, place.index, &escaped, out);
    }
  }
  VERBATIM_INLINE void unpack(Stream<TileSource>& stream, uint16_t* out) const {
    Tile::prefetch(panels, stream.place.index + generic::kPrefetchTiles);
    Tile::unpack(panels, stream.place, out);
  }
  VERBATIM_INLINE void finish(Stream<TileSource>& stream, uint16_t* out) const {
    if constexpr (kEscaped) {
      stream.position.write(panels.escaped, out);
      if (stream.place.index + 1 < end) stream.position.read(panels.escaped, stream.place.index + 1);
    }
  }
};

/// The number of tiles of each panel that are unpacked at a time for more than sixteen rows. While one set is
/// multiplied the next is unpacked into the other half of the buffer.
constexpr int64_t kTilesAtOnce = 4;

/// Walks the tiles of a panel: calls multiply(first tile, count, words) for every set of unpacked tiles, each
/// unpacked while the set before it is multiplied.
template <typename Source, typename Multiply>
VERBATIM_INLINE void for_each_set(const Source& source, int64_t tiles, int64_t panel, Multiply&& multiply) {
  alignas(64) uint16_t words[2][kTilesAtOnce * kTileElements];
  uint64_t escaped = source.first_escaped(panel);
  const auto unpack = [&](int64_t first) __attribute__((always_inline)) {
    const int64_t count = tiles - first < kTilesAtOnce ? tiles - first : kTilesAtOnce;
    uint16_t* const out = words[first / kTilesAtOnce % 2];
    for (int64_t t = 0; t < count; ++t) {
      source.unpack_tile(escaped, {panel, first + t, panel * tiles + first + t}, out + t * kTileElements);
    }
  };
  unpack(0);
  for (int64_t tile = 0; tile < tiles; tile += kTilesAtOnce) {
    if (tile + kTilesAtOnce < tiles) unpack(tile + kTilesAtOnce);
    const int64_t count = tiles - tile < kTilesAtOnce ? tiles - tile : kTilesAtOnce;
    multiply(tile, count, reinterpret_cast<const BFloat16*>(words[tile / kTilesAtOnce % 2]));
  }
}

template <int kTiles, typename Source>
void tall(const Source& source, const TileProduct& p) {
  for (int64_t panel = 0; panel < p.panel_count; ++panel) {
    float* const c = p.c + panel * kPanelWidth;
    begin_tall<kTiles>(c, p.c_stride, false);
    for_each_set(source, p.weights.tiles, p.first_panel + panel,
                 [&](int64_t tile, int64_t count, const BFloat16* words) {
                   for (int64_t t = 0; t < count; ++t) {
                     step_tall<kTiles>(p.a + (tile + t) * kInnerStep, p.a_stride, words + t * kTileElements);
                   }
                 });
    end_tall<kTiles>(c, p.c_stride);
  }
}

template <typename Source>
void one_row_tile(const Source& source, const TileProduct& p) {
  configure_wide(static_cast<int>(p.rows));
  PanelStreams<Source>(source, {.a = gather_rows(p),
                                .rows = p.rows,
                                .tiles = p.weights.tiles,
                                .c = p.c - p.first_panel * kPanelWidth,
                                .c_stride = p.c_stride})
      .run(p.first_panel, p.panel_count);
}

/// Multiplies up to 32 rows: every tile is unpacked once and used by all rows while it is in the first-level
/// cache.
template <typename Source>
void few_rows(const Source& source, const TileProduct& p) {
  const RowTiles rows = row_tiles(p.rows);
  if (rows.tiles == 1) return one_row_tile(source, p);
  configure_tall(rows);
  tall<2>(source, p);
}

/// Multiplies with `count` of the product's panels, which are unpacked at `panels`.
ManyRowsProduct many_rows_product(const TileProduct& p, int64_t panel, int64_t count,
                                  const BFloat16* panels) {
  return {.a = p.tiled,
          .rows = p.rows,
          .tiles = p.weights.tiles,
          .panels = panels,
          .panel_stride = p.weights.tiles * kTileElements,
          .panel_count = count,
          .c = p.c + panel * kPanelWidth,
          .c_stride = p.c_stride,
          .sums = p.sums};
}

/// Multiplies many rows: unpacks whole panels to BF16, which stay in the second-level cache.
template <typename Source>
void many_rows(const Source& source, const TileProduct& p) {
  const int64_t tiles = p.weights.tiles;
  for (int64_t panel = 0; panel < p.panel_count; panel += kTileScratchPanels) {
    const int64_t left = p.panel_count - panel;
    const int64_t count = left < kTileScratchPanels ? left : kTileScratchPanels;
    for (int64_t j = 0; j < count; ++j) {
      const int64_t index = p.first_panel + panel + j;
      uint64_t escaped = source.first_escaped(index);
      for (int64_t t = 0; t < tiles; ++t) {
        source.unpack_tile(escaped, {index, t, index * tiles + t},
                           p.scratch + (j * tiles + t) * kTileElements);
      }
    }
    many_rows_bf16(many_rows_product(p, panel, count, reinterpret_cast<const BFloat16*>(p.scratch)));
  }
}

template <typename Tile, bool kEscaped>
void multiply(const TileProduct& p) {
  const TileSource<Tile, kEscaped> source{p.weights, (p.first_panel + p.panel_count) * p.weights.tiles};
  if (p.tiled == nullptr) {
    few_rows(source, p);
    _tile_release();
  } else {
    many_rows(source, p);
  }
}

/// Multiplies up to sixteen rows, with weights that are read in place.
void few_rows_bf16(const TileProduct& p) {
  Bf16Streams({.a = gather_rows(p),
               .rows = p.rows,
               .weights = p.weights.codes,
               .tiles = p.weights.tiles,
               .c = p.c - p.first_panel * kPanelWidth,
               .c_stride = p.c_stride})
      .run(p.first_panel, p.panel_count);
  _tile_release();
}

void multiply_bf16(const TileProduct& p) {
  if (p.tiled == nullptr) return few_rows_bf16(p);
  const int64_t stride = p.weights.tiles * kTileElements;
  const BFloat16* const panels = reinterpret_cast<const BFloat16*>(p.weights.codes) + p.first_panel * stride;
  many_rows_bf16(many_rows_product(p, 0, p.panel_count, panels));
}

}  // namespace

void tile_product(const TileProduct& p) {
  switch (p.reading) {
    case kTileBf16:
      return multiply_bf16(p);
    case kTileMxfp4:
      return multiply<generic::Mxfp4Tile<Words>, false>(p);
    case kTileBsfpFull:
      return multiply<BsfpFullTile, true>(p);
    case kTileMxbf16Full:
      return multiply<Mxbf16FullTile, true>(p);
    default:
      return;  // the others are scaled after the product: scaled_product()
  }
}

}  // namespace verbatim::amx
