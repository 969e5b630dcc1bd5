#include "formats/linear.h"

#include <algorithm>

#include "base/error.h"
#include "formats/products.h"
#include "formats/q8_0.h"
#include "kernels/dispatch.h"

namespace verbatim {

namespace {

/// The number of rows below which the calling thread converts activations alone, which is faster than sharing
/// the work.
constexpr int64_t kRowsToShare = 8;

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

/// Calls kernel(a product of some panels) on blocks of panels, spread over the team.
template <typename A, typename Weight>
void share_panels(void (*kernel)(const PanelProduct<A, Weight>&), Matrix<const A> x,
                  const PackedMatrix& store, Reading reading, Matrix<float> y, ThreadTeam& team) {
  const int64_t panel_stride = store.k * kPanelWidth;
  const int64_t block = panels_per_block(store, reading, x.rows);
  team.split(store.panels(), block, [&](int, int64_t begin, int64_t end) {
    kernel({.a = x.data,
            .a_stride = x.stride,
            .rows = x.rows,
            .panels = store.plane(0).as<const Weight>() + begin * panel_stride,
            .panel_stride = panel_stride,
            .panel_count = end - begin,
            .k = store.k,
            .c = y.data + begin * kPanelWidth,
            .c_stride = y.stride,
            .accumulate = false,
            .near = end == store.panels()});
  });
}

}  // namespace

const PackedMatrix* LinearWeight::find(Format format) const {
  const auto found =
      std::find_if(stores.begin(), stores.end(), [&](const PackedMatrix& m) { return m.format == format; });
  return found == stores.end() ? nullptr : &*found;
}

Reading LinearWeight::resolve(Reading reading) const {
  if (reading == Reading::kFull) {
    for (const PackedMatrix& candidate : stores) {
      if (is_exact(candidate.format) || candidate.own) return readings(candidate.format).front();
    }
    return readings(stores.front().format).front();
  }
  if (reading == Reading::kDraft) {
    if (const std::optional<Reading> draft = draft_reading(*this)) return *draft;
    fail(ErrorKind::kUsage, "the model was loaded without weights to draft from: load the format draft too");
  }
  if (find(reading_format(reading)) == nullptr) {
    fail(ErrorKind::kUsage, "the model was loaded without weights in {}, which the reading {} needs",
         format_name(reading_format(reading)), reading_name(reading));
  }
  return reading;
}

std::optional<Reading> draft_reading(const LinearWeight& weight) {
  // `mxbf16-draft` and `mxfp4-w4a8` are the same numbers; drafts in `int4` are closer to the text than drafts
  // in `bsfp`.
  constexpr Reading kDrafts[] = {Reading::kMxbf16Draft,        Reading::kMxfp4W4A8, Reading::kInt4W4A8,
                                 Reading::kInt4AsymmetricW4A8, Reading::kBsfpDraft, Reading::kQ8_0Draft,
                                 Reading::kKQuantsA8};
  std::optional<Reading> first;
  for (const Reading draft : kDrafts) {
    const PackedMatrix* const store = weight.find(reading_format(draft));
    if (store == nullptr || (store->format == Format::kQ8_0 && !upper_halves_tell(*store))) continue;
    if (store->own) return draft;
    if (!first) first = draft;
  }
  return first;
}

const PackedMatrix& LinearWeight::store(Reading reading) const {
  return *find(reading_format(resolve(reading)));
}

LinearWeight first_columns(const LinearWeight& weight, int64_t columns) {
  LinearWeight first{.columns = std::min(columns, weight.columns),
                     .k = weight.k,
                     .stores = {},
                     .wide_inputs = weight.wide_inputs};
  for (const PackedMatrix& whole : weight.stores) {
    // Every format lays its panels out one after the other, so the first of them are a beginning of each
    // plane.
    PackedMatrix part;
    part.format = whole.format;
    part.element = whole.element;
    part.own = whole.own;
    part.columns = first.padded_columns();
    part.k = whole.k;
    for (const Plane& plane : whole.planes) part.planes.emplace_back(plane.bytes());
    first.stores.push_back(std::move(part));
  }
  return first;
}

void LinearWorkspace::reserve(int64_t rows, int64_t k, int members) {
  const auto elements = static_cast<size_t>(rows * round_up(k, kInnerStep));
  const auto team = static_cast<size_t>(members);
  bf16.reserve(static_cast<size_t>(rows * bf16_stride(k)));
  codes.reserve(static_cast<size_t>(rows * int8_stride(k)));
  scales.reserve(elements / kInnerStep);
  sums.reserve(elements / kInnerStep);
  products_stride = std::max({products_stride, kManyRowsScratch, rows * kTileScratchPanels * kPanelWidth});
  products.reserve(team * static_cast<size_t>(products_stride));
  unpacked_stride = std::max(unpacked_stride, kTileScratchPanels * kPanelWidth * round_up<int64_t>(k, 256));
  unpacked.reserve(team * static_cast<size_t>(unpacked_stride));
  transposed.reserve(static_cast<size_t>(round_up(k, kInnerStep) * kPanelWidth));
}

int64_t panels_per_block(const PackedMatrix& store, Reading reading, int64_t rows) {
  // The number of rows from which on a product takes longer the more rows it has.
  constexpr int64_t kRowsOfOneReading = 8;
  // Kernels on vectors take up to four panels side by side. Those on tiles take six streams of panels, or
  // groups of kManyRowsPanels, and first gather the rows, which costs the more the more rows there are.
  int64_t multiple = kTileScratchPanels;
  if (kernels().tile_product != nullptr) multiple = rows <= 4 ? 12 : rows <= 16 ? 24 : kManyRowsPanels;
  const int64_t bytes = operations(store.format).bytes_read(store, reading) / store.panels();
  return items_per_block(bytes * ceil_div(rows, kRowsOfOneReading), multiple);
}

Matrix<const BFloat16> to_bf16(Matrix<const float> x, LinearWorkspace& workspace, ThreadTeam& team) {
  const Matrix<BFloat16> out(workspace.bf16.data(), x.rows, x.columns, bf16_stride(x.columns));
  for_rows(x.rows, team, [&](int64_t r) {
    kernels().to_bf16(x.row(r), x.columns, out.row(r));
    std::fill(out.row(r) + x.columns, out.row(r) + out.stride, BFloat16{0});
  });
  return out;
}

Int8Rows to_int8(Matrix<const float> x, Reading reading, int64_t wide_inputs, LinearWorkspace& workspace,
                 ThreadTeam& team) {
  const KernelTable& kernel = kernels();
  const int64_t groups = x.columns / kInnerStep;
  // The number of inputs with four bits, which come first.
  const int64_t narrow = reading == Reading::kInt4W4A4 ? x.columns - wide_inputs : 0;
  for_rows(x.rows, team, [&](int64_t r) {
    int8_t* const codes = workspace.codes.data() + r * int8_stride(x.columns);
    float* const scales = workspace.scales.data() + r * groups;
    int32_t* const sums = workspace.sums.data() + r * groups;
    if (reading == Reading::kInt8W8A8) return kernel.quantize_int8(x.row(r), x.columns, codes, scales, sums);
    const int64_t group = narrow / kInnerStep;
    kernel.quantize_int4(x.row(r), narrow, codes, scales, sums);
    kernel.quantize_wide(x.row(r) + narrow, x.columns - narrow, codes + narrow, scales + group, sums + group);
  });
  return {workspace.codes.data(), workspace.scales.data(), workspace.sums.data(), x.rows, x.columns,
          int8_stride(x.columns)};
}

void multiply_panels(const PackedMatrix& store, Matrix<const float> x, Matrix<float> y,
                     LinearWorkspace& workspace, ThreadTeam& team) {
  const KernelTable& kernel = kernels();
  const bool tiles =
      kernel.tile_product != nullptr || (kernel.register_product != nullptr && x.rows > kFewPanelRows);
  if (store.format == Format::kBf16 && tiles) {
    multiply_tiles(store, Reading::kBf16, x, y, workspace, team);
  } else if (store.format == Format::kBf16) {
    share_panels(kernel.panels_bf16, to_bf16(x, workspace, team), store, Reading::kBf16, y, team);
  } else if (store.format == Format::kF16) {
    share_panels(kernels().panels_f16, x, store, Reading::kF16, y, team);
  } else {
    share_panels(kernels().panels_f32, x, store, Reading::kF32, y, team);
  }
}

void linear(const LinearWeight& weight, Reading reading, Matrix<const float> x, Matrix<float> y,
            LinearWorkspace& workspace, ThreadTeam& team) {
  workspace.reserve(x.rows, x.columns, team.size());
  const Reading resolved = weight.resolve(reading);
  const PackedMatrix& store = *weight.find(reading_format(resolved));
  switch (resolved) {
    case Reading::kBf16:
    case Reading::kF16:
    case Reading::kF32:
      multiply_panels(store, x, y, workspace, team);
      return;
    case Reading::kMxfp4W4A16:
    case Reading::kBsfpFull:
    case Reading::kMxbf16Full:
      multiply_tiles(store, resolved, x, y, workspace, team);
      return;
    case Reading::kQ8_0:
      multiply_q8_0(store, x, y, workspace, team);
      return;
    case Reading::kInt8W8A16:
    case Reading::kInt4W4A16:
    case Reading::kInt4AsymmetricW4A16:
      multiply_scaled_late(store, resolved, x, y, workspace, team);
      return;
    case Reading::kInt8W8A8:
    case Reading::kInt4W4A8:
    case Reading::kInt4W4A4:
    case Reading::kInt4AsymmetricW4A8:
    case Reading::kMxfp4W4A8:
    case Reading::kMxbf16Draft:
    case Reading::kBsfpDraft:
    case Reading::kQ8_0Draft:
      multiply_integers(store, resolved, weight.wide_inputs, x, y, workspace, team);
      return;
    case Reading::kBsfpDraftA16:
      multiply_bsfp_levels(store, x, y, workspace, team);
      return;
    case Reading::kKQuantsA16:
    case Reading::kKQuantsA8:
      multiply_k_quants(store, resolved, x, y, workspace, team);
      return;
    case Reading::kSqueeze3:
    case Reading::kSqueeze4:
      multiply_squeezed(store, x, y, workspace, team);
      return;
    case Reading::kFull:
    case Reading::kDraft:
      break;  // resolved above
  }
}

}  // namespace verbatim
