#include <algorithm>
#include <array>

#include "formats/products.h"
#include "formats/tile_codes.h"
#include "formats/tile_views.h"
#include "kernels/dispatch.h"

namespace verbatim {

namespace {

/// Panels that are unpacked side by side, and tiles of each at a time: 16 KB, which stays in the first-level
/// cache.
constexpr int64_t kPanels = kTileScratchPanels;
constexpr int64_t kTiles = 4;

uint16_t* scratch_of(const LinearWorkspace& workspace, int member) {
  return workspace.unpacked.data() + member * workspace.unpacked_stride;
}

/// Blocks of panels, unpacked `step` tiles at a time into `out`: calls multiply(panel, panels, first tile,
/// tiles) after each.
template <typename Multiply>
void unpack_blocks(const TileView& view, int64_t first_panel, int64_t end_panel, int64_t step, uint16_t* out,
                   Multiply&& multiply) {
  const UnpackTiles unpack = kernels().unpack_tiles[view.reading];
  const uint64_t* const starts = view.panels.exceptions.starts;
  for (int64_t panel = first_panel; panel < end_panel; panel += kPanels) {
    const int64_t count = std::min(kPanels, end_panel - panel);
    std::array<uint64_t, kPanels> exceptions{};
    if (starts != nullptr) std::copy_n(starts + panel, count, exceptions.begin());
    for (int64_t tile = 0; tile < view.panels.tiles; tile += step) {
      const int64_t tiles = std::min(step, view.panels.tiles - tile);
      for (int64_t j = 0; j < count; ++j) {
        unpack(view.panels, panel + j, tile, tiles, &exceptions[static_cast<size_t>(j)],
               out + j * step * kInnerStep * kPanelWidth);
      }
      multiply(panel, count, tile, tiles);
    }
  }
}

/// Unpacks a block into the first-level cache and multiplies it with all rows, in the order in which the
/// kernel would take whole panels.
template <typename A, typename Weight>
void multiply_unpacked(void (*kernel)(const PanelProduct<A, Weight>&), const TileView& view, int64_t panels,
                       Matrix<const A> x, Matrix<float> y, const LinearWorkspace& workspace,
                       ThreadTeam& team) {
  team.run([&](int member, int size) {
    uint16_t* const scratch = scratch_of(workspace, member);
    unpack_blocks(view, panels * member / size, panels * (member + 1) / size, kTiles, scratch,
                  [&](int64_t panel, int64_t count, int64_t tile, int64_t tiles) {
                    kernel({.a = x.data + tile * kInnerStep,
                            .a_stride = x.stride,
                            .rows = x.rows,
                            .panels = reinterpret_cast<const Weight*>(scratch),
                            .panel_stride = kTiles * kInnerStep * kPanelWidth,
                            .panel_count = count,
                            .k = tiles * kInnerStep,
                            .c = y.data + panel * kPanelWidth,
                            .c_stride = y.stride,
                            .accumulate = tile > 0});
                  });
  });
}

/// Through KernelTable::tile_product.
void multiply_through_tiles(const TileView& view, int64_t panels, Matrix<const BFloat16> a, Matrix<float> y,
                            const LinearWorkspace& workspace, ThreadTeam& team) {
  team.run([&](int member, int size) {
    const int64_t begin = panels * member / size;
    const int64_t end = panels * (member + 1) / size;
    if (begin == end) return;
    kernels().tile_product({.a = a.data,
                            .a_stride = a.stride,
                            .rows = a.rows,
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

/// The scales and zero points of sixteen columns in a scale group.
struct ColumnScales {
  std::array<float, kPanelWidth> scale;
  std::array<float, kPanelWidth> zero;
};

ColumnScales column_scales(const PackedMatrix& store, int64_t panel, int64_t tile) {
  const int64_t column = panel * kPanelWidth;
  const int64_t k = tile * kInnerStep;
  const int64_t index =
      store.format == Format::kInt8 ? tile_scale_index(store, column, k) : scale_index(store, column, k);
  const Float16* const scales = store.plane(1).as<const Float16>() + index;
  ColumnScales result{};
  for (size_t i = 0; i < kPanelWidth; ++i) {
    result.scale[i] = to_float(scales[i]);
    if (store.format == Format::kInt4Asymmetric) {
      result.zero[i] =
          static_cast<float>(store.plane(2).as<const uint8_t>()[index + static_cast<int64_t>(i)]);
    }
  }
  return result;
}

float sum_of(const BFloat16* x, int64_t count) {
  float sum = 0.0f;
  for (int64_t i = 0; i < count; ++i) sum += to_float(x[i]);
  return sum;
}

}  // namespace

void multiply_tiles(const PackedMatrix& store, Reading reading, Matrix<const float> x, Matrix<float> y,
                    LinearWorkspace& workspace, ThreadTeam& team) {
  const KernelTable& kernel = kernels();
  const TileView view = tile_view(store, reading);
  if (view.reading == kTileBsfpFullF16) {
    multiply_unpacked(kernel.panels_f16, view, store.panels(), x, y, workspace, team);
    return;
  }
  const Matrix<const BFloat16> a = to_bf16(x, workspace, team);
  if (kernel.tile_product == nullptr) {
    multiply_unpacked(kernel.panels_bf16, view, store.panels(), a, y, workspace, team);
    return;
  }
  multiply_through_tiles(view, store.panels(), a, y, workspace, team);
}

void multiply_scaled_late(const PackedMatrix& store, Reading reading, Matrix<const float> x, Matrix<float> y,
                          LinearWorkspace& workspace, ThreadTeam& team) {
  const KernelTable& kernel = kernels();
  const TileView view = tile_view(store, reading);
  const Matrix<const BFloat16> a = to_bf16(x, workspace, team);
  const int64_t step = store.format == Format::kInt8 ? 1 : kTilesPerScaleGroup;
  constexpr int64_t kWidth = kPanels * kPanelWidth;
  team.run([&](int member, int size) {
    uint16_t* const scratch = scratch_of(workspace, member);
    float* const products = workspace.products.data() + member * workspace.products_stride;
    const auto scale_and_add = [&](int64_t panel, int64_t j, int64_t tile, int64_t tiles) {
      const ColumnScales columns = column_scales(store, panel + j, tile);
      for (int64_t r = 0; r < x.rows; ++r) {
        const float* const product = products + r * kWidth + j * kPanelWidth;
        float* const c = y.row(r) + (panel + j) * kPanelWidth;
        const float sum = store.format == Format::kInt4Asymmetric
                              ? sum_of(a.row(r) + tile * kInnerStep, tiles * kInnerStep)
                              : 0.0f;
        for (size_t i = 0; i < kPanelWidth; ++i) {
          const float scaled = columns.scale[i] * (product[i] - columns.zero[i] * sum);
          c[i] = tile == 0 ? scaled : c[i] + scaled;
        }
      }
    };
    unpack_blocks(view, store.panels() * member / size, store.panels() * (member + 1) / size, step, scratch,
                  [&](int64_t panel, int64_t count, int64_t tile, int64_t tiles) {
                    kernel.panels_bf16({.a = a.data + tile * kInnerStep,
                                        .a_stride = a.stride,
                                        .rows = a.rows,
                                        .panels = reinterpret_cast<const BFloat16*>(scratch),
                                        .panel_stride = step * kInnerStep * kPanelWidth,
                                        .panel_count = count,
                                        .k = tiles * kInnerStep,
                                        .c = products,
                                        .c_stride = kWidth,
                                        .accumulate = false});
                    for (int64_t j = 0; j < count; ++j) scale_and_add(panel, j, tile, tiles);
                  });
  });
}

void multiply_integers(const PackedMatrix& store, Matrix<const float> x, Matrix<float> y,
                       LinearWorkspace& workspace, ThreadTeam& team) {
  const KernelTable& kernel = kernels();
  const bool mxfp4 = store.format == Format::kMxfp4 || store.format == Format::kMxbf16;
  const bool exact_in_floats = mxfp4 || store.format == Format::kBsfp;
  if (exact_in_floats && kernel.tile_product != nullptr && x.rows > kIntegerVectorRows) {
    // The scales are powers of two (BSFP's: numbers of few bits), so the products are BF16 numbers' and the
    // sums of a group are exact: the tiles of the floating-point unit give the same bits with nothing left to
    // scale.
    const TileView view = tile_view(store, mxfp4 ? Reading::kMxfp4W4A16 : Reading::kBsfpDraft);
    multiply_through_tiles(view, store.panels(), to_rounded_bf16(x, workspace, team), y, workspace, team);
    return;
  }
  const Int8Rows a = to_int8(x, workspace, team);
  team.split(store.panels(), [&](int64_t begin, int64_t end) {
    const IntegerView view = integer_view(store, begin, end - begin);
    kernel.integer_product[view.weights](a, view.panels, y.data + begin * kPanelWidth, y.stride);
  });
}

}  // namespace verbatim
