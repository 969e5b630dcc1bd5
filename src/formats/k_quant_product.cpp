#include <vector>

#include "formats/k_quants.h"
#include "formats/products.h"
#include "kernels/dispatch.h"

namespace verbatim {

namespace {

/// The numbers beside the codes of a row, for each block: a step, and sums of 16 and of 32 activations.
constexpr int64_t kFloatsOfBlock = 1 + kBlockInputs / 16 + kBlockInputs / 32;
/// The sums of 16 codes, of the upper and of the lower bytes.
constexpr int64_t kSumsOfBlock = 2 * kBlockInputs / 16;

/// The distance between rows of codes, both bytes: a little more than a power of two, so that rows do not
/// compete for the same sets of the first-level cache.
int64_t two_byte_stride(int64_t k) {
  return 2 * blocks_of(k) * kBlockInputs + 64;
}

/// Rounds activations to integers of sixteen bits, or with `upper_alone` to the upper eight of these.
std::span<const TwoByteRow> to_two_bytes(Matrix<const float> x, bool upper_alone, LinearWorkspace& workspace,
                                         ThreadTeam& team) {
  const int64_t blocks = blocks_of(x.columns);
  const int64_t k = blocks * kBlockInputs;
  const int64_t stride = two_byte_stride(x.columns);
  workspace.codes.reserve(static_cast<size_t>(x.rows * stride));
  workspace.scales.reserve(static_cast<size_t>(x.rows * blocks * kFloatsOfBlock));
  workspace.sums.reserve(static_cast<size_t>(x.rows * blocks * kSumsOfBlock));
  workspace.two_byte_rows.resize(static_cast<size_t>(x.rows));
  const auto quantize = [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      int8_t* const codes = workspace.codes.data() + r * stride;
      float* const floats = workspace.scales.data() + r * blocks * kFloatsOfBlock;
      int32_t* const sums = workspace.sums.data() + r * blocks * kSumsOfBlock;
      TwoByteRow& row = workspace.two_byte_rows[static_cast<size_t>(r)];
      row = {.upper = codes,
             .lower = upper_alone ? nullptr : codes + k,
             .steps = floats,
             .upper_sums = sums,
             .lower_sums = upper_alone ? nullptr : sums + blocks * kSumsOfBlock / 2,
             .of_16 = floats + blocks,
             .of_32 = floats + blocks + k / 16};
      kernels().quantize_two_bytes(x.row(r), x.columns, row);
    }
  };
  constexpr int64_t kRowsToShareQuantizing = 8;
  if (x.rows < kRowsToShareQuantizing) {
    quantize(0, x.rows);
  } else {
    team.split(x.rows, quantize);
  }
  return workspace.two_byte_rows;
}

}  // namespace

void multiply_k_quants(const PackedMatrix& store, Reading reading, Matrix<const float> x, Matrix<float> y,
                       LinearWorkspace& workspace, ThreadTeam& team) {
  const KernelTable& kernel = kernels();
  const std::span<const TwoByteRow> rows = to_two_bytes(x, reading == Reading::kKQuantsA8, workspace, team);
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
