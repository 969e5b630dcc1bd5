#include "formats/products.h"
#include "formats/two_byte_rows.h"
#include "kernels/dispatch.h"

namespace verbatim {

void multiply_q8_0(const PackedMatrix& store, Matrix<const float> x, Matrix<float> y,
                   LinearWorkspace& workspace, ThreadTeam& team) {
  const KernelTable& kernel = kernels();
  if (kernel.halves_product == nullptr) {
    multiply_scaled_late(store, Reading::kQ8_0, x, y, workspace, team);
    return;
  }
  const std::span<const TwoByteRow> rows = to_two_bytes(x, {.in_quad_order = true}, workspace, team);
  const int64_t tile_halves = kInnerStep * kPanelWidth / 2;
  const int64_t block = panels_per_block(store, Reading::kQ8_0, x.rows);
  team.split(store.panels(), block, [&](int, int64_t begin, int64_t end) {
    const int64_t first = begin * store.tiles();
    kernel.halves_product({.rows = rows.data(),
                           .row_count = x.rows,
                           .upper = store.plane(0).as<const uint8_t>() + first * tile_halves,
                           .lower = store.plane(2).as<const uint8_t>() + first * tile_halves,
                           .scales = store.plane(1).as<const Float16>() + first * kPanelWidth,
                           .panel_count = end - begin,
                           .tiles = store.tiles(),
                           .c = y.data + begin * kPanelWidth,
                           .c_stride = y.stride});
  });
}

}  // namespace verbatim
