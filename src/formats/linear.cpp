#include "formats/linear.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "kernels/dispatch.h"

namespace verbatim {

namespace {

/// Below this many rows, converting activations is quicker than handing the work out.
constexpr int64_t kRowsToShare = 8;
/// Groups of MXFP4 unpacked at a time for w4a16: 16 KB of BF16, which stays in the L1 cache.
constexpr int64_t kUnpackedGroups = 16;

template <typename Work>
void for_rows(int64_t rows, ThreadTeam& team, Work&& work) {
  const auto range = [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) work(r);
  };
  if (rows < kRowsToShare) {
    range(0, rows);
  } else {
    team.split(rows, range);
  }
}

Matrix<const BFloat16> to_bf16(Matrix<const float> x, LinearWorkspace& workspace, ThreadTeam& team) {
  const KernelTable& kernel = kernels();
  const Matrix<BFloat16> out(workspace.bf16.data(), x.rows, x.columns);
  for_rows(x.rows, team, [&](int64_t r) { kernel.to_bf16(x.row(r), x.columns, out.row(r)); });
  return out;
}

Int8Rows to_int8(Matrix<const float> x, LinearWorkspace& workspace, ThreadTeam& team) {
  const KernelTable& kernel = kernels();
  const int64_t groups = x.columns / kInnerStep;
  for_rows(x.rows, team, [&](int64_t r) {
    kernel.quantize_int8(x.row(r), x.columns, workspace.codes.data() + r * x.columns,
                         workspace.scales.data() + r * groups, workspace.sums.data() + r * groups);
  });
  return {workspace.codes.data(), workspace.scales.data(), workspace.sums.data(), x.rows, x.columns};
}

/// Calls product(panel range) on each member's share of the panels.
template <typename A, typename Weight>
void multiply(void (*kernel)(const PanelProduct<A, Weight>&), Matrix<const A> x,
              const PanelMatrix<Weight>& weight, Matrix<float> y, ThreadTeam& team) {
  team.split(weight.columns / kPanelWidth, [&](int64_t begin, int64_t end) {
    kernel({.a = x.data,
            .a_stride = x.stride,
            .rows = x.rows,
            .panels = weight.panel(begin),
            .panel_stride = weight.panel_stride(),
            .panel_count = end - begin,
            .k = weight.k,
            .c = y.data + begin * kPanelWidth,
            .c_stride = y.stride,
            .accumulate = false});
  });
}

/// BF16 activations with MXFP4 weights: unpacks a block of a panel into the L1 cache and multiplies it with
/// all rows through the bf16 kernel, in the order in which that kernel would take the whole panel.
void multiply_w4a16(Matrix<const BFloat16> x, const Mxfp4Matrix& weight, Matrix<float> y, ThreadTeam& team) {
  const KernelTable& kernel = kernels();
  const int64_t groups = weight.k / kInnerStep;
  team.split(weight.columns / kPanelWidth, [&](int64_t begin, int64_t end) {
    alignas(64) BFloat16 unpacked[kUnpackedGroups * kInnerStep * kPanelWidth];
    for (int64_t panel = begin; panel < end; ++panel) {
      const Mxfp4Panels packed = weight.panels(panel, 1);
      for (int64_t group = 0; group < groups; group += kUnpackedGroups) {
        const int64_t count = std::min(kUnpackedGroups, groups - group);
        kernel.unpack_mxfp4(packed.codes + group * kInnerStep * kPanelWidth / 2,
                            packed.scales + group * kPanelWidth, count, unpacked);
        kernel.panels_bf16({.a = x.data + group * kInnerStep,
                            .a_stride = x.stride,
                            .rows = x.rows,
                            .panels = unpacked,
                            .panel_stride = 0,
                            .panel_count = 1,
                            .k = count * kInnerStep,
                            .c = y.data + panel * kPanelWidth,
                            .c_stride = y.stride,
                            .accumulate = group > 0});
      }
    }
  });
}

void multiply_w4a8(const Int8Rows& x, const Mxfp4Matrix& weight, Matrix<float> y, ThreadTeam& team) {
  const KernelTable& kernel = kernels();
  team.split(weight.columns / kPanelWidth, [&](int64_t begin, int64_t end) {
    kernel.panels_mxfp4_w4a8(x, weight.panels(begin, end - begin), y.data + begin * kPanelWidth, y.stride);
  });
}

void multiply_full(const LinearWeight& weight, Matrix<const float> x, Matrix<float> y,
                   LinearWorkspace& workspace, ThreadTeam& team) {
  const KernelTable& kernel = kernels();
  if (const auto* bf16 = std::get_if<PanelMatrix<BFloat16>>(&weight.full)) {
    multiply(kernel.panels_bf16, to_bf16(x, workspace, team), *bf16, y, team);
  } else if (const auto* f16 = std::get_if<PanelMatrix<Float16>>(&weight.full)) {
    multiply(kernel.panels_f16, x, *f16, y, team);
  } else {
    multiply(kernel.panels_f32, x, std::get<PanelMatrix<float>>(weight.full), y, team);
  }
}

const Mxfp4Matrix& require_mxfp4(const LinearWeight& weight) {
  if (!weight.mxfp4)
    fail(ErrorKind::kUsage, "the model was loaded without MXFP4 weights, which this reading needs");
  return *weight.mxfp4;
}

}  // namespace

PackResult pack_linear(int64_t columns, int64_t k, const WeightRows& rows, const PackOptions& options,
                       ThreadTeam& team) {
  PackResult result;
  LinearWeight& weight = result.weight;
  weight.columns = columns;
  weight.k = k;
  switch (options.full) {
    case FullFormat::kBf16:
      weight.full.emplace<PanelMatrix<BFloat16>>(columns, k);
      break;
    case FullFormat::kF16:
      weight.full.emplace<PanelMatrix<Float16>>(columns, k);
      break;
    case FullFormat::kF32:
      weight.full.emplace<PanelMatrix<float>>(columns, k);
      break;
  }
  if (options.mxfp4) weight.mxfp4.emplace(columns, k);

  const size_t width = static_cast<size_t>(k);
  std::vector<std::vector<float>> scratch(static_cast<size_t>(team.size()));
  for (std::vector<float>& buffer : scratch) buffer.resize(kPanelWidth * width);
  std::atomic<bool> finite = true;
  const int64_t panels = weight.padded_columns() / kPanelWidth;
  team.run([&](int member, int size) {
    std::vector<float>& buffer = scratch[static_cast<size_t>(member)];
    for (int64_t panel = panels * member / size; panel < panels * (member + 1) / size; ++panel) {
      const int64_t count = std::min(kPanelWidth, columns - panel * kPanelWidth);
      const std::span<float> block(buffer.data(), static_cast<size_t>(count) * width);
      for (int64_t i = 0; i < count; ++i) {
        rows(panel * kPanelWidth + i, block.subspan(static_cast<size_t>(i) * width, width));
      }
      if (!std::all_of(block.begin(), block.end(), [](float w) { return std::isfinite(w); })) finite = false;
      std::visit([&](auto& matrix) { pack_panel(matrix, panel, block, count); }, weight.full);
      if (weight.mxfp4) {
        for (int64_t i = 0; i < count; ++i) {
          pack_mxfp4_column(*weight.mxfp4, panel * kPanelWidth + i,
                            block.subspan(static_cast<size_t>(i) * width, width));
        }
      }
    }
  });
  result.finite = finite;
  return result;
}

void LinearWorkspace::reserve(int64_t rows, int64_t k) {
  const auto elements = static_cast<size_t>(rows * round_up(k, kInnerStep));
  bf16.reserve(elements);
  codes.reserve(elements);
  scales.reserve(elements / kInnerStep);
  sums.reserve(elements / kInnerStep);
}

void linear(const LinearWeight& weight, Reading reading, Matrix<const float> x, Matrix<float> y,
            LinearWorkspace& workspace, ThreadTeam& team) {
  workspace.reserve(x.rows, x.columns);
  switch (reading) {
    case Reading::kFull:
      multiply_full(weight, x, y, workspace, team);
      return;
    case Reading::kMxfp4W4A16:
      multiply_w4a16(to_bf16(x, workspace, team), require_mxfp4(weight), y, team);
      return;
    case Reading::kMxfp4W4A8:
      multiply_w4a8(to_int8(x, workspace, team), require_mxfp4(weight), y, team);
      return;
  }
}

}  // namespace verbatim
