#include "formats/k_quants.h"
#include "formats/products.h"
#include "formats/two_byte_rows.h"
#include "kernels/dispatch.h"

namespace verbatim {

void multiply_k_quants(const PackedMatrix& store, Reading reading, Matrix<const float> x, Matrix<float> y,
                       LinearWorkspace& workspace, ThreadTeam& team) {
  const KernelTable& kernel = kernels();
  const std::span<const TwoByteRow> rows =
      to_two_bytes(x, {.upper_alone = reading == Reading::kKQuantsA8}, workspace, team);
  const int64_t block = panels_per_block(store, reading, x.rows);
  team.split(store.panels(), block, [&](int, int64_t begin, int64_t end) {
    // The panels of one shape that lie together.
    for (int64_t first = begin; first < end;) {
      const BlockShape shape = panel_shape(store, first);
      int64_t last = first + 1;
      while (last < end && panel_shape(store, last) == shape) ++last;
      kernel.block_product[shape]({.rows = rows.data(),
                                   .row_count = x.rows,
                                   .row_stride = two_byte_stride(store.k),
                                   .panels = panel_blocks(store, first),
                                   .panel_count = last - first,
                                   .blocks = blocks_of(store.k),
                                   .c = y.data + first * kPanelWidth,
                                   .c_stride = y.stride});
      first = last;
    }
  });
}

}  // namespace verbatim
