#include "formats/pack_linear.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "formats/squeeze.h"

namespace verbatim {

namespace {

/// The step between the panels that are sampled for the magnitudes of a matrix's weights.
constexpr int64_t kSampledPanels = 4;

bool has(const PackLinearOptions& options, bool (*property)(Format)) {
  return std::any_of(options.formats.begin(), options.formats.end(), property);
}

/// Reads the panels of a matrix one after the other, each member of a team with its own.
class PanelReader {
 public:
  PanelReader(int64_t columns, int64_t k, const MatrixRows& rows, const PackLinearOptions& options)
      : columns_(columns), k_(k), rows_(rows), sensitivities_(options.sensitivities) {
    weights_.resize(static_cast<size_t>(kPanelWidth * k));
    if (sensitivities_) sensitivity_.resize(weights_.size());
    const auto wanted = [&](Format format) {
      return std::find(options.formats.begin(), options.formats.end(), format) != options.formats.end();
    };
    if (wanted(Format::kKQuants) && options.blocks.read) {
      block_rows_ = options.blocks.read;
      blocks_.resize(weights_.size() / kBlockInputs);
    }
    const bool int4 = wanted(Format::kInt4) || wanted(Format::kInt4Asymmetric);
    codes_of_int4_ = int4 && options.codes_of_int4;
    if ((!wanted(Format::kQ8_0) && !codes_of_int4_) || !options.codes) return;
    code_rows_ = options.codes;
    codes_.resize(weights_.size());
    scales_.resize(static_cast<size_t>(kPanelWidth * ceil_div(k, kInnerStep)));
  }

  PanelSource read(int64_t panel) {
    PanelSource source;
    source.panel = panel;
    source.column_count = std::min(kPanelWidth, columns_ - panel * kPanelWidth);
    const auto width = static_cast<size_t>(k_);
    const auto groups = static_cast<size_t>(ceil_div(k_, kInnerStep));
    for (int64_t i = 0; i < source.column_count; ++i) {
      const size_t offset = static_cast<size_t>(i) * width;
      rows_(panel * kPanelWidth + i, std::span(weights_).subspan(offset, width));
      if (sensitivities_) {
        sensitivities_(panel * kPanelWidth + i, std::span(sensitivity_).subspan(offset, width));
      }
      if (code_rows_) {
        code_rows_(panel * kPanelWidth + i, std::span(codes_).subspan(offset, width),
                   std::span(scales_).subspan(static_cast<size_t>(i) * groups, groups));
      }
      if (block_rows_) {
        block_rows_(panel * kPanelWidth + i,
                    std::span(blocks_).subspan(offset / kBlockInputs, width / kBlockInputs));
      }
    }
    const size_t used = static_cast<size_t>(source.column_count) * width;
    source.weights = std::span(weights_).first(used);
    if (sensitivities_) source.sensitivity = std::span(sensitivity_).first(used);
    if (code_rows_) {
      source.codes_of_int4 = codes_of_int4_;
      source.codes = std::span(codes_).first(used);
      source.scales = std::span(scales_).first(static_cast<size_t>(source.column_count) * groups);
    }
    if (block_rows_) source.blocks = std::span(blocks_).first(used / kBlockInputs);
    return source;
  }

 private:
  int64_t columns_;
  int64_t k_;
  const MatrixRows& rows_;
  const MatrixRows& sensitivities_;
  std::vector<float> weights_;
  std::vector<float> sensitivity_;
  CodeRows code_rows_;
  bool codes_of_int4_ = false;
  std::vector<int8_t> codes_;
  std::vector<Float16> scales_;
  std::function<void(int64_t column, std::span<KQuantBlock> blocks)> block_rows_;
  std::vector<KQuantBlock> blocks_;
};

/// Calls visit(member, panel) for every panel, spread over the team.
template <typename Visit>
void for_each_panel(int64_t columns, ThreadTeam& team, Visit&& visit) {
  const int64_t panels = round_up(columns, kPanelWidth) / kPanelWidth;
  team.run([&](int member, int size) {
    for (int64_t panel = panels * member / size; panel < panels * (member + 1) / size; ++panel) {
      visit(static_cast<size_t>(member), panel);
    }
  });
}

/// Gathers the statistics of the whole matrix that must be known before its first panel is packed.
MatrixStatistics look_through(int64_t columns, int64_t k, const MatrixRows& rows,
                              const PackLinearOptions& options, std::vector<PanelReader>& readers,
                              ThreadTeam& team) {
  MatrixStatistics statistics;
  statistics.shapes = options.blocks.shapes;
  if (has(options, [](Format format) { return format == Format::kBsfp; })) {
    std::vector<std::vector<uint64_t>> counts(readers.size(), std::vector<uint64_t>(kMagnitudeBins));
    for_each_panel(columns, team, [&](size_t member, int64_t panel) {
      if (panel % kSampledPanels != 0) return;
      for (const float w : readers[member].read(panel).weights) {
        if (std::isfinite(w)) ++counts[member][magnitude_bin(w)];
      }
    });
    statistics.magnitudes.resize(kMagnitudeBins);
    for (const std::vector<uint64_t>& part : counts) {
      for (size_t i = 0; i < kMagnitudeBins; ++i) statistics.magnitudes[i] += part[i];
    }
  }
  if (has(options, has_sparse_part)) {
    const SparseThresholds thresholds =
        sparse_thresholds(columns, k, rows, options.sensitivities, options.sparse, team);
    statistics.high_sensitivity = thresholds.sensitivity;
    statistics.outlier_magnitude = thresholds.magnitude;
  }
  return statistics;
}

}  // namespace

PackResult pack_linear(int64_t columns, int64_t k, const MatrixRows& rows, const PackLinearOptions& options,
                       ThreadTeam& team) {
  if (options.formats.empty()) fail(ErrorKind::kUsage, "a matrix cannot be packed into no format at all");
  const auto members = static_cast<size_t>(team.size());
  std::vector<PanelReader> readers(members, PanelReader(columns, k, rows, options));
  const MatrixStatistics statistics = look_through(columns, k, rows, options, readers, team);

  PackResult result;
  result.weight.columns = columns;
  result.weight.k = k;
  for (const Format format : options.formats) {
    result.weight.stores.push_back(operations(format).allocate(columns, k, options.element, statistics));
  }
  std::vector<PackedMatrix>& stores = result.weight.stores;
  const auto panels = static_cast<size_t>(result.weight.padded_columns() / kPanelWidth);
  std::vector<std::vector<PanelTail>> tails(stores.size(), std::vector<PanelTail>(panels));
  std::vector<uint8_t> finite(members, 1);
  for_each_panel(columns, team, [&](size_t member, int64_t panel) {
    const PanelSource source = readers[member].read(panel);
    if (!std::all_of(source.weights.begin(), source.weights.end(),
                     [](float w) { return std::isfinite(w); })) {
      finite[member] = 0;
    }
    for (size_t i = 0; i < stores.size(); ++i) {
      operations(stores[i].format)
          .pack_panel(stores[i], source, statistics, tails[i][static_cast<size_t>(panel)]);
    }
  });
  for (size_t i = 0; i < stores.size(); ++i) {
    const auto finish = operations(stores[i].format).finish;
    if (finish != nullptr) finish(stores[i], tails[i]);
  }
  result.finite = std::all_of(finite.begin(), finite.end(), [](uint8_t f) { return f == 1; });
  return result;
}

}  // namespace verbatim
