#include "tools/inspect_sparse.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>

#include "base/error.h"
#include "checkpoint/sensitivity.h"
#include "container/load.h"
#include "formats/squeeze.h"
#include "model/sensitivity_origin.h"
#include "model/weight_sketch.h"
#include "tools/inspect_packed.h"

namespace verbatim {

namespace {

/// A matrix of the file in a format with a sparse part.
struct SqueezedMatrix {
  const StoredMatrix* matrix;
  const StoredFormat* store;
};

std::vector<SqueezedMatrix> squeezed_matrices(const ContainerHeader& header) {
  std::vector<SqueezedMatrix> found;
  for (const StoredMatrix& matrix : header.matrices) {
    for (const StoredFormat& store : matrix.stores) {
      if (has_sparse_part(store.format)) found.push_back({&matrix, &store});
    }
  }
  return found;
}

/// The matrices of the model by name, made of the tensors that the sensitivities are of: packing has cut
/// tensors that hold several of the engine's parts.
std::map<std::string, MatrixSpec> specs_as_in(const SensitivityFile& file, ModelConfig config) {
  std::map<std::string, MatrixSpec> specs;
  const auto all_there = [&](const MatrixSpec& spec) {
    return std::ranges::all_of(spec.parts, [&](const WeightPart& part) { return file.has(part.tensor); });
  };
  for (const auto& [qkv, gate_up] : {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
    if (config.plain_mlp && gate_up) continue;
    config.fused_qkv = qkv;
    config.fused_gate_up = gate_up;
    for (MatrixSpec& spec : matrix_specs(config)) {
      const auto known = specs.find(spec.name);
      if (known == specs.end() || (!all_there(known->second) && all_there(spec))) {
        std::string name = spec.name;
        specs.insert_or_assign(std::move(name), std::move(spec));
      }
    }
  }
  return specs;
}

/// Reads one column of a matrix of the file, of the first of its stores with a sparse part.
ReadColumn packed_columns(const Container& container) {
  return [&container](const MatrixSpec& spec, int64_t column, std::span<float> row) {
    for (const auto& [matrix, store] : squeezed_matrices(container.header)) {
      if (matrix->name != spec.name) continue;
      const PackedMatrix mapped = map_store(container, *matrix, *store);
      std::vector<float> unpacked(static_cast<size_t>(mapped.k));
      operations(mapped.format).unpack_column(mapped, readings(mapped.format).front(), column, unpacked);
      std::copy_n(unpacked.begin(), row.size(), row.begin());
      return;
    }
  };
}

void add_sensitivity(const PackedMatrix& store, int64_t k, const MatrixRows& rows, SparsePartReport& report) {
  std::vector<float> row(static_cast<size_t>(k));
  double all = 0.0;
  double sparse = 0.0;
  for (int64_t column = 0; column < report.columns; ++column) {
    rows(column, row);
    all += std::accumulate(row.begin(), row.end(), 0.0);
    for (const uint16_t input : sparse_inputs(store, column)) sparse += static_cast<double>(row.at(input));
  }
  report.sensitivity = all;
  report.sparse_sensitivity = sparse;
}

SparsePartReport describe(const StoredMatrix& matrix, const StoredFormat& stored, const PackedMatrix& store) {
  SparsePartReport report{.matrix = matrix.name,
                          .format = std::string(format_name(store.format)),
                          .weights = matrix.columns * matrix.k,
                          .bytes = bytes_of(stored),
                          .columns = matrix.columns,
                          .columns_by_entries = {},
                          .sensitivity = {},
                          .sparse_sensitivity = {}};
  std::vector<int64_t> counts;
  for (int64_t column = 0; column < matrix.columns; ++column) {
    const auto count = std::ssize(sparse_inputs(store, column));
    counts.push_back(count);
    const auto bin = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(count)));
    if (report.columns_by_entries.size() <= bin) report.columns_by_entries.resize(bin + 1);
    ++report.columns_by_entries[bin];
    report.entries += count;
  }
  std::sort(counts.begin(), counts.end(), std::greater());
  report.most_entries = counts.front();
  const auto hundredth = std::max<std::ptrdiff_t>(1, std::ssize(counts) / 100);
  report.fullest_entries = std::accumulate(counts.begin(), counts.begin() + hundredth, int64_t{0});
  return report;
}

}  // namespace

double SparsePartReport::bits_per_weight() const {
  return 8.0 * static_cast<double>(bytes) / static_cast<double>(weights);
}

std::vector<SparsePartReport> report_sparse_parts(const Container& container,
                                                  const std::filesystem::path& sensitivities) {
  const std::vector<SqueezedMatrix> matrices = squeezed_matrices(container.header);
  std::optional<SensitivityFile> file;
  std::map<std::string, MatrixSpec> specs;
  if (!sensitivities.empty()) {
    if (matrices.empty()) {
      fail(ErrorKind::kUsage,
           "sensitivities were given, but {} has no matrix in squeeze3 or squeeze4, whose sparse parts would "
           "hold some of them",
           container.path.string());
    }
    file = open_sensitivities(sensitivities);
    if (file->metadata.contains(kWeightSketch)) {
      require_same_model(container.path, weight_sketch(container.header.config, packed_columns(container)),
                         *file);
    }
    specs = specs_as_in(*file, container.header.config);
  }
  std::vector<SparsePartReport> reports;
  for (const auto& [matrix, stored] : matrices) {
    const PackedMatrix store = map_store(container, *matrix, *stored);
    reports.push_back(describe(*matrix, *stored, store));
    if (!file) continue;
    const MatrixSpec& spec = specs.at(matrix->name);
    const MatrixRows rows = sensitivity_rows(container.header.config, *file, spec);
    if (rows) add_sensitivity(store, spec.k, rows, reports.back());
  }
  return reports;
}

}  // namespace verbatim
