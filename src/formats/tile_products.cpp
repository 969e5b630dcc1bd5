#include <algorithm>
#include <array>
#include <span>

#include "formats/products.h"
#include "formats/tile_codes.h"
#include "formats/tile_views.h"
#include "kernels/dispatch.h"

namespace verbatim {

namespace {

/// The number of panels that are unpacked side by side, and the number of tiles of each that are unpacked at
/// a time: 16 KB together, which stay in the first-level cache.
constexpr int64_t kPanels = kTileScratchPanels;
constexpr int64_t kTiles = 4;
static_assert(kTiles % kTilesPerScaleGroup == 0);

/// The panels of a matrix, and how many of them a thread takes at a time.
struct Panels {
  int64_t count;
  int64_t block;
};

uint16_t* scratch_of(const LinearWorkspace& workspace, int member) {
  return workspace.unpacked.data() + member * workspace.unpacked_stride;
}

constexpr int64_t kWidth = kPanels * kPanelWidth;

/// The results of some panels before they are complete, beside each other: lines of a matrix whose rows are
/// some KB long would push each other out of the first-level cache.
struct Waiting {
  float* sums;  ///< [rows][kWidth]

  Waiting(const LinearWorkspace& workspace, int member)
      : sums(workspace.products.data() + member * workspace.products_stride) {}

  void complete(Matrix<float> y, int64_t panel, int64_t panels) const {
    for (int64_t r = 0; r < y.rows; ++r) {
      std::copy_n(sums + r * kWidth, panels * kPanelWidth, y.row(r) + panel * kPanelWidth);
    }
  }
};

/// Goes over blocks of panels and unpacks kTiles tiles at a time into `out`. After each it calls
/// multiply(panel, panels, first tile, tiles).
template <typename Multiply>
void unpack_blocks(const TileView& view, int64_t first_panel, int64_t end_panel, uint16_t* out,
                   Multiply&& multiply) {
  const UnpackTiles unpack = kernels().unpack_tiles[view.reading];
  const uint64_t* const starts = view.panels.escaped.starts;
  for (int64_t panel = first_panel; panel < end_panel; panel += kPanels) {
    const int64_t count = std::min(kPanels, end_panel - panel);
    std::array<uint64_t, kPanels> escaped{};
    if (starts != nullptr) std::copy_n(starts + panel, count, escaped.begin());
    for (int64_t tile = 0; tile < view.panels.tiles; tile += kTiles) {
      const int64_t tiles = std::min(kTiles, view.panels.tiles - tile);
      for (int64_t j = 0; j < count; ++j) {
        unpack(view.panels, panel + j, tile, tiles, &escaped[static_cast<size_t>(j)],
               out + j * kTiles * kInnerStep * kPanelWidth);
      }
      multiply(panel, count, tile, tiles);
    }
  }
}

/// Unpacks a block into the first-level cache and multiplies it with all rows, in the order in which the
/// kernel would take whole panels.
template <typename A, typename Weight>
void multiply_unpacked(void (*kernel)(const PanelProduct<A, Weight>&), const TileView& view, Panels panels,
                       Matrix<const A> x, Matrix<float> y, const LinearWorkspace& workspace,
                       ThreadTeam& team) {
  team.split(panels.count, panels.block, [&](int member, int64_t begin, int64_t end) {
    uint16_t* const scratch = scratch_of(workspace, member);
    const Waiting waiting(workspace, member);
    unpack_blocks(view, begin, end, scratch, [&](int64_t panel, int64_t count, int64_t tile, int64_t tiles) {
      kernel({.a = x.data + tile * kInnerStep,
              .a_stride = x.stride,
              .rows = x.rows,
              .panels = reinterpret_cast<const Weight*>(scratch),
              .panel_stride = kTiles * kInnerStep * kPanelWidth,
              .panel_count = count,
              .k = tiles * kInnerStep,
              .c = waiting.sums,
              .c_stride = kWidth,
              .accumulate = tile > 0,
              .near = true});
      if (tile + tiles == view.panels.tiles) waiting.complete(y, panel, count);
    });
  });
}

/// Copies activations into the order of TileProduct::tiled if there are more than `few` rows; otherwise
/// returns null.
const BFloat16* in_tiles(Matrix<const BFloat16> a, int64_t few, LinearWorkspace& workspace,
                         ThreadTeam& team) {
  if (a.rows <= few) return nullptr;
  constexpr int64_t kTileRows = 16;
  const int64_t row_tiles = ceil_div(a.rows, kTileRows);
  const int64_t tiles = a.columns / kInnerStep;
  workspace.tiled.reserve(static_cast<size_t>(row_tiles * kTileRows * a.columns));
  BFloat16* const out = workspace.tiled.data();
  team.split(row_tiles, [&](int64_t begin, int64_t end) {
    for (int64_t row_tile = begin; row_tile < end; ++row_tile) {
      for (int64_t t = 0; t < tiles; ++t) {
        const int64_t piece = t / kManyRowsPiece * kManyRowsPiece;
        const int64_t before =
            piece * row_tiles + row_tile * std::min(kManyRowsPiece, tiles - piece) + t - piece;
        BFloat16* to = out + before * kTileRows * kInnerStep;
        for (int64_t r = row_tile * kTileRows; r < (row_tile + 1) * kTileRows; ++r, to += kInnerStep) {
          if (r < a.rows) {
            std::copy_n(a.row(r) + t * kInnerStep, kInnerStep, to);
          } else {
            std::fill_n(to, kInnerStep, BFloat16{0});
          }
        }
      }
    }
  });
  return out;
}

/// The activations once more, in another order.
struct Reordered {
  const BFloat16* tiled = nullptr;  ///< TileProduct::tiled
  const float* widened = nullptr;   ///< TileProduct::widened
};

/// Calls multiply(product) on blocks of panels, spread over the team.
template <typename Multiply>
void share_tiles(const TileView& view, Panels panels, Matrix<const BFloat16> a, Reordered reordered,
                 Matrix<float> y, const LinearWorkspace& workspace, ThreadTeam& team, Multiply&& multiply) {
  team.split(panels.count, panels.block, [&](int member, int64_t begin, int64_t end) {
    multiply(TileProduct{.a = a.data,
                         .a_stride = a.stride,
                         .rows = a.rows,
                         .tiled = reordered.tiled,
                         .widened = reordered.widened,
                         .weights = view.panels,
                         .first_panel = begin,
                         .panel_count = end - begin,
                         .c = y.data + begin * kPanelWidth,
                         .c_stride = y.stride,
                         .scratch = scratch_of(workspace, member),
                         .sums = workspace.products.data() + member * workspace.products_stride,
                         .reading = view.reading});
  });
}

/// Multiplies by KernelTable::tile_product.
void multiply_through_tiles(const TileView& view, Panels panels, Matrix<const BFloat16> a, Matrix<float> y,
                            LinearWorkspace& workspace, ThreadTeam& team) {
  share_tiles(view, panels, a, {in_tiles(a, few_tile_rows(view.reading), workspace, team)}, y, workspace,
              team, kernels().tile_product);
}

/// Copies activations into the order of TileProduct::widened.
const float* widened_tiles(Matrix<const BFloat16> a, LinearWorkspace& workspace, ThreadTeam& team) {
  workspace.widened.reserve(static_cast<size_t>(a.rows * a.columns));
  float* const out = workspace.widened.data();
  team.split(a.columns / kInnerStep, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      for (int64_t r = 0; r < a.rows; ++r) {
        const BFloat16* const from = a.row(r) + t * kInnerStep;
        std::transform(from, from + kInnerStep, out + (t * a.rows + r) * kInnerStep,
                       [](BFloat16 number) { return to_float(number); });
      }
    }
  });
  return out;
}

/// Whether unpacking a tile while another is multiplied pays for so many rows. MXFP4 in up to four rows is
/// unpacked in less time than a sum takes to wait for what was added before.
bool pays_to_fuse(const TileView& view, int64_t rows) {
  return kernels().fused_product != nullptr && (view.reading != kTileMxfp4 || rows > 4) &&
         rows <= kMostFusedRows;
}

/// Multiplies by KernelTable::fused_product.
void multiply_fused(const TileView& view, Panels panels, Matrix<const BFloat16> a, Matrix<float> y,
                    LinearWorkspace& workspace, ThreadTeam& team) {
  share_tiles(view, panels, a, {.widened = widened_tiles(a, workspace, team)}, y, workspace, team,
              kernels().fused_product);
}

/// Whether every tile of 32 inputs has scales of its own.
bool has_tile_scales(const PackedMatrix& store) {
  return store.format == Format::kInt8 || store.format == Format::kQ8_0;
}

/// The operands of multiply_scaled_late() beside the codes, by scale group.
struct GroupScales {
  const Float16* scales;    ///< [panel][groups][16]
  const uint8_t* zeros;     ///< [panel][groups][16]; null if there are no zero points
  const float* group_sums;  ///< with zeros: Σ x of each row's groups, [rows][groups]
  int64_t groups;

  int64_t index(int64_t panel, int64_t group) const { return (panel * groups + group) * kPanelWidth; }
};

/// Sums x over each scale group, one input after the other. Several groups are summed at a time, each in a
/// chain of its own.
void sum_groups(std::span<const BFloat16> x, std::span<float> sums) {
  constexpr size_t kChains = 8;
  constexpr size_t kGroup = kScaleGroup;
  size_t group = 0;
  for (; (group + kChains) * kGroup <= x.size(); group += kChains) {
    std::array<float, kChains> chains{};
    for (size_t i = 0; i < kGroup; ++i) {
      for (size_t j = 0; j < kChains; ++j) chains[j] += to_float(x[(group + j) * kGroup + i]);
    }
    std::ranges::copy(chains, sums.begin() + static_cast<int64_t>(group));
  }
  for (; group < sums.size(); ++group) {
    float sum = 0.0f;
    for (size_t i = group * kGroup; i < std::min(x.size(), (group + 1) * kGroup); ++i) sum += to_float(x[i]);
    sums[group] = sum;
  }
}

GroupScales group_scales(const PackedMatrix& store, Matrix<const BFloat16> a, LinearWorkspace& workspace,
                         ThreadTeam& team) {
  GroupScales result{store.plane(1).as<const Float16>(), nullptr, nullptr,
                     has_tile_scales(store) ? store.tiles() : scale_groups(store)};
  if (store.format != Format::kInt4Asymmetric) return result;
  float* const sums = workspace.scales.data();
  team.split(a.rows, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      sum_groups({a.row(r), static_cast<size_t>(a.columns)},
                 {sums + r * result.groups, static_cast<size_t>(result.groups)});
    }
  });
  result.zeros = store.plane(2).as<const uint8_t>();
  result.group_sums = sums;
  return result;
}

/// Whether so many rows are multiplied with tiles that become floats in registers. More than four rows make
/// floats of a tile twice, which pays for codes of eight bits.
bool takes_row_product(const TileView& view, int64_t rows) {
  if (kernels().row_product == nullptr) return false;
  if (view.reading == kTileInt8) return rows <= kMostRowProductRows;
  constexpr int64_t kRowsAtOnce = kMostRowProductRows / 2;
  const bool has_floats =
      view.reading == kTileMxfp4 || view.reading == kTileInt4 || view.reading == kTileInt4Asymmetric;
  return has_floats && rows <= kRowsAtOnce;
}

/// Multiplies by KernelTable::row_product.
void multiply_row_product(const TileView& view, Panels panels, const GroupScales& scales,
                          Matrix<const BFloat16> a, Matrix<float> y, LinearWorkspace& workspace,
                          ThreadTeam& team) {
  share_tiles(view, panels, a, {.widened = widened_tiles(a, workspace, team)}, y, workspace, team,
              [&](const TileProduct& product) {
                kernels().row_product({product, scales.zeros, scales.group_sums});
              });
}

/// Multiplies by KernelTable::scaled_product.
void multiply_scaled_tiles(const TileView& view, Panels panels, const GroupScales& scales,
                           Matrix<const BFloat16> a, Matrix<float> y, LinearWorkspace& workspace,
                           ThreadTeam& team) {
  share_tiles(view, panels, a, {in_tiles(a, few_tile_rows(view.reading), workspace, team)}, y, workspace,
              team, [&](const TileProduct& product) {
                kernels().scaled_product({product, scales.zeros, scales.group_sums});
              });
}

/// Multiplies by KernelTable::register_product.
void multiply_in_registers(const TileView& view, Panels panels, const GroupScales& scales,
                           Matrix<const BFloat16> a, Matrix<float> y, LinearWorkspace& workspace,
                           ThreadTeam& team) {
  share_tiles(view, panels, a, {in_tiles(a, few_register_rows(view.reading), workspace, team)}, y, workspace,
              team, [&](const TileProduct& product) {
                kernels().register_product({product, scales.zeros, scales.group_sums});
              });
}

}  // namespace

void multiply_tiles(const PackedMatrix& store, Reading reading, Matrix<const float> x, Matrix<float> y,
                    LinearWorkspace& workspace, ThreadTeam& team) {
  const KernelTable& kernel = kernels();
  const TileView view = tile_view(store, reading);
  const Panels panels{store.panels(), panels_per_block(store, reading, x.rows)};
  if (view.reading == kTileBsfpFullF16) {
    multiply_unpacked(kernel.panels_f16, view, panels, x, y, workspace, team);
    return;
  }
  const Matrix<const BFloat16> a = to_bf16(x, workspace, team);
  if (kernel.register_product != nullptr) {
    multiply_in_registers(view, panels, {}, a, y, workspace, team);
    return;
  }
  if (takes_row_product(view, a.rows)) {
    multiply_row_product(view, panels, {}, a, y, workspace, team);
    return;
  }
  if (pays_to_fuse(view, a.rows)) {
    multiply_fused(view, panels, a, y, workspace, team);
    return;
  }
  if (kernel.tile_product == nullptr) {
    multiply_unpacked(kernel.panels_bf16, view, panels, a, y, workspace, team);
    return;
  }
  multiply_through_tiles(view, panels, a, y, workspace, team);
}

void multiply_scaled_late(const PackedMatrix& store, Reading reading, Matrix<const float> x, Matrix<float> y,
                          LinearWorkspace& workspace, ThreadTeam& team) {
  const KernelTable& kernel = kernels();
  const TileView view = tile_view(store, reading);
  const Panels panels{store.panels(), panels_per_block(store, reading, x.rows)};
  const Matrix<const BFloat16> a = to_bf16(x, workspace, team);
  const GroupScales scales = group_scales(store, a, workspace, team);
  if (kernel.register_product != nullptr) {
    multiply_in_registers(view, panels, scales, a, y, workspace, team);
    return;
  }
  if (takes_row_product(view, a.rows)) {
    multiply_row_product(view, panels, scales, a, y, workspace, team);
    return;
  }
  if (kernel.scaled_product != nullptr) {
    multiply_scaled_tiles(view, panels, scales, a, y, workspace, team);
    return;
  }
  const int64_t group_tiles = has_tile_scales(store) ? 1 : kTilesPerScaleGroup;
  team.split(panels.count, panels.block, [&](int member, int64_t begin, int64_t end) {
    uint16_t* const scratch = scratch_of(workspace, member);
    const Waiting waiting(workspace, member);
    unpack_blocks(view, begin, end, scratch, [&](int64_t panel, int64_t count, int64_t tile, int64_t tiles) {
      const int64_t group = tile / group_tiles;
      const int64_t index = scales.index(panel, group);
      const bool zeros = scales.zeros != nullptr;
      kernel.scaled_panels({{.a = a.data + tile * kInnerStep,
                             .a_stride = a.stride,
                             .rows = a.rows,
                             .panels = reinterpret_cast<const BFloat16*>(scratch),
                             .panel_stride = kTiles * kInnerStep * kPanelWidth,
                             .panel_count = count,
                             .k = tiles * kInnerStep,
                             .c = waiting.sums,
                             .c_stride = kWidth,
                             .accumulate = tile > 0,
                             .near = true},
                            group_tiles * kInnerStep,
                            scales.scales + index,
                            zeros ? scales.zeros + index : nullptr,
                            scales.groups,
                            zeros ? scales.group_sums + group : nullptr});
      if (tile + tiles == view.panels.tiles) waiting.complete(y, panel, count);
    });
  });
}

void multiply_integers(const PackedMatrix& store, Reading reading, int64_t wide_inputs, Matrix<const float> x,
                       Matrix<float> y, LinearWorkspace& workspace, ThreadTeam& team) {
  const KernelTable& kernel = kernels();
  const Int8Rows a = to_int8(x, reading, wide_inputs, workspace, team);
  const int64_t block = panels_per_block(store, reading, x.rows);
  team.split(store.panels(), block, [&](int, int64_t begin, int64_t end) {
    const IntegerView view = integer_view(store, begin, end - begin);
    kernel.integer_product[view.weights](a, view.panels, y.data + begin * kPanelWidth, y.stride);
  });
}

}  // namespace verbatim
