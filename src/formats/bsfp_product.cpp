#include <algorithm>

#include "formats/bsfp.h"
#include "formats/products.h"
#include "kernels/dispatch.h"

namespace verbatim {

namespace {

constexpr float kLargestFloat16 = 65504.0f;

}  // namespace

void multiply_bsfp_levels(const PackedMatrix& store, Matrix<const float> x, Matrix<float> y,
                          LinearWorkspace& workspace, ThreadTeam& team) {
  workspace.rounded.reserve(static_cast<size_t>(x.rows * x.columns));
  float* const rounded = workspace.rounded.data();
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t k = 0; k < x.columns; ++k) {
      const float value = x.row(r)[k];
      // NaN stays what it is.
      const float near = value > kLargestFloat16    ? kLargestFloat16
                         : value < -kLargestFloat16 ? -kLargestFloat16
                                                    : value;
      rounded[r * x.columns + k] = to_float(to_float16(near));
    }
  }
  team.split(store.panels(), 1, [&](int member, int64_t begin, int64_t end) {
    // The scratch memory of a member holds four panels in 16 bits, and so one of floats.
    float* const panel =
        reinterpret_cast<float*>(workspace.unpacked.data() + member * workspace.unpacked_stride);
    for (int64_t p = begin; p < end; ++p) {
      unpack_bsfp_levels(store, p, panel);
      kernels().panels_f32({.a = rounded,
                            .a_stride = x.columns,
                            .rows = x.rows,
                            .panels = panel,
                            .panel_stride = store.k * kPanelWidth,
                            .panel_count = 1,
                            .k = store.k,
                            .c = y.data + p * kPanelWidth,
                            .c_stride = y.stride,
                            .accumulate = false});
    }
  });
}

}  // namespace verbatim
