#include <algorithm>
#include <array>

#include "formats/products.h"
#include "formats/squeeze.h"
#include "kernels/dispatch.h"

namespace verbatim {

namespace {

/// The number of rows that the sparse part multiplies side by side.
constexpr int64_t kLanes = 16;

struct SparsePart {
  const uint32_t* starts;
  const uint16_t* inputs;
  const BFloat16* values;
};

SparsePart sparse_part(const PackedMatrix& store) {
  return {store.plane(2).as<const uint32_t>(), store.plane(3).as<const uint16_t>(),
          store.plane(4).as<const BFloat16>()};
}

void multiply_dense(const PackedMatrix& store, Matrix<const BFloat16> a, Matrix<float> y,
                    const LinearWorkspace& workspace, ThreadTeam& team) {
  const bool wide = store.format == Format::kSqueeze4;
  const auto kernel = wide ? kernels().squeeze4 : kernels().squeeze3;
  const int64_t groups = squeeze_groups(store);
  const Reading reading = wide ? Reading::kSqueeze4 : Reading::kSqueeze3;
  const int64_t block = panels_per_block(store, reading, a.rows);
  team.split(store.panels(), block, [&](int member, int64_t begin, int64_t end) {
    kernel({.a = a.data,
            .a_stride = a.stride,
            .rows = a.rows,
            .codes = store.plane(0).as<const uint8_t>() + begin * kPanelWidth * groups * (wide ? 64 : 96),
            .tables = store.plane(1).as<const uint16_t>() + begin * kPanelWidth * (wide ? 16 : 8),
            .groups = groups,
            .panel_count = end - begin,
            .c = y.data + begin * kPanelWidth,
            .c_stride = y.stride,
            .scratch = workspace.unpacked.data() + member * workspace.unpacked_stride});
  });
}

/// Multiplies with the sparse part for a range of columns: y[lane][column] += Σ value · x[input][lane]. The
/// entries of an output are added in order, starting from zero, and their sum is added to y, for any number
/// of lanes.
template <int64_t kWidth>
void add_columns(const SparsePart& part, int64_t begin, int64_t end, const float* x, int64_t lanes,
                 Matrix<float> y) {
  for (int64_t column = begin; column < end; ++column) {
    std::array<float, static_cast<size_t>(kWidth)> sums{};
    for (uint32_t i = part.starts[column]; i < part.starts[column + 1]; ++i) {
      const float value = to_float(part.values[i]);
      const float* const from = x + int64_t{part.inputs[i]} * kWidth;
      for (size_t lane = 0; lane < static_cast<size_t>(kWidth); ++lane) sums[lane] += value * from[lane];
    }
    for (int64_t lane = 0; lane < lanes; ++lane) y.row(lane)[column] += sums[static_cast<size_t>(lane)];
  }
}

/// A range of output columns: begin .. end - 1.
struct ColumnRange {
  int64_t begin = 0;
  int64_t end = 0;
};

constexpr int64_t kRangesPerMember = 8;
constexpr int64_t kMostMembers = 32;  // that the ranges are cut for

struct ColumnRanges {
  std::array<ColumnRange, size_t{kRangesPerMember * kMostMembers}> ranges;
  int64_t count = 0;
};

/// Cuts the columns into ranges of about as many entries each, some for every member of a team (SqueezeLLM's
/// balanced kernel). No column is cut, so a range with a long one may have more. The ranges are in the order
/// in which ThreadTeam::split() hands them out one by one: every member begins with the longest of its own.
ColumnRanges cut_columns(const SparsePart& part, int64_t columns, int team) {
  const int64_t members = std::min<int64_t>(team, kMostMembers);
  ColumnRanges cut;
  cut.count = team > 1 ? kRangesPerMember * members : 1;
  std::array<ColumnRange, size_t{kRangesPerMember * kMostMembers}> by_length;
  const uint64_t entries = part.starts[columns];
  int64_t begin = 0;
  for (int64_t i = 0; i < cut.count; ++i) {
    const uint64_t entry = entries * static_cast<uint64_t>(i + 1) / static_cast<uint64_t>(cut.count);
    const uint32_t* const after = std::lower_bound(part.starts + begin, part.starts + columns, entry);
    const int64_t end = i + 1 == cut.count ? columns : after - part.starts;
    by_length[static_cast<size_t>(i)] = {begin, end};
    begin = end;
  }
  const auto length = [&](const ColumnRange& range) {
    return part.starts[range.end] - part.starts[range.begin];
  };
  std::sort(by_length.begin(), by_length.begin() + cut.count,
            [&](const ColumnRange& a, const ColumnRange& b) { return length(a) > length(b); });
  for (int64_t i = 0; i < cut.count; ++i) {
    const int64_t place = i % members * (cut.count / members) + i / members;
    cut.ranges[static_cast<size_t>(place)] = by_length[static_cast<size_t>(i)];
  }
  return cut;
}

void add_sparse(const PackedMatrix& store, Matrix<const float> x, Matrix<float> y,
                const LinearWorkspace& workspace, ThreadTeam& team) {
  const SparsePart part = sparse_part(store);
  if (part.starts[store.columns] == 0) return;
  const ColumnRanges cut = cut_columns(part, store.columns, team.size());
  float* const transposed = workspace.transposed.data();
  for (int64_t row = 0; row < x.rows; row += kLanes) {
    const int64_t lanes = std::min(kLanes, x.rows - row);
    if (lanes > 1) {
      team.split(x.columns, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
          for (int64_t lane = 0; lane < kLanes; ++lane) {
            transposed[k * kLanes + lane] = lane < lanes ? x.row(row + lane)[k] : 0.0f;
          }
        }
      });
    }
    const Matrix<float> out = y.slice(row, lanes);
    team.split(cut.count, 1, [&](int, int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const auto [begin, end] = cut.ranges[static_cast<size_t>(i)];
        if (lanes > 1) {
          add_columns<kLanes>(part, begin, end, transposed, lanes, out);
        } else {
          add_columns<1>(part, begin, end, x.row(row), lanes, out);
        }
      }
    });
  }
}

}  // namespace

void multiply_squeezed(const PackedMatrix& store, Matrix<const float> x, Matrix<float> y,
                       LinearWorkspace& workspace, ThreadTeam& team) {
  multiply_dense(store, to_bf16(x, workspace, team), y, workspace, team);
  add_sparse(store, x, y, workspace, team);
}

}  // namespace verbatim
