#include "formats/squeeze.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "formats/sparse_split.h"
#include "formats/squeeze_quantizer.h"

namespace verbatim {

namespace {

constexpr int64_t kMostInputs = 65536;  // inputs of sparse weights are 16-bit numbers
constexpr int64_t kSubtile = 32;

int levels_of(Format format) {
  return format == Format::kSqueeze4 ? 16 : 8;
}
int64_t group_bytes(Format format) {
  return format == Format::kSqueeze4 ? 64 : 96;
}
size_t code_bytes(const PackedMatrix& matrix) {
  return static_cast<size_t>(matrix.columns * squeeze_groups(matrix) * group_bytes(matrix.format));
}
size_t table_bytes(const PackedMatrix& matrix) {
  return static_cast<size_t>(matrix.columns * levels_of(matrix.format)) * sizeof(BFloat16);
}

/// An entry of the sparse part, as it is kept until all panels are packed.
struct Entry {
  uint16_t column;  // within the panel
  uint16_t input;
  uint16_t value;
};

uint8_t* group_of(const PackedMatrix& matrix, int64_t column, int64_t k) {
  const int64_t index = column / kPanelWidth * squeeze_groups(matrix) + k / squeeze_group(matrix.format);
  return matrix.plane(0).as<uint8_t>() +
         (index * kPanelWidth + column % kPanelWidth) * group_bytes(matrix.format);
}

void put_code(const PackedMatrix& matrix, int64_t column, int64_t k, uint8_t code) {
  uint8_t* const group = group_of(matrix, column, k);
  const int64_t subtile = k % squeeze_group(matrix.format) / kSubtile;
  const int bits = matrix.format == Format::kSqueeze4 ? 4 : 2;
  uint16_t word;
  std::memcpy(&word, group + k % kSubtile * 2, sizeof word);
  word = static_cast<uint16_t>(word | (code & ((1 << bits) - 1)) << (bits * subtile));
  std::memcpy(group + k % kSubtile * 2, &word, sizeof word);
  if (bits == 2) {
    uint8_t& upper = group[64 + k % kSubtile];
    upper = static_cast<uint8_t>(upper | code >> 2 << subtile);
  }
}

uint8_t get_code(const PackedMatrix& matrix, int64_t column, int64_t k) {
  const uint8_t* const group = group_of(matrix, column, k);
  const int64_t subtile = k % squeeze_group(matrix.format) / kSubtile;
  uint16_t word;
  std::memcpy(&word, group + k % kSubtile * 2, sizeof word);
  if (matrix.format == Format::kSqueeze4) return word >> (4 * subtile) & 15;
  const int upper = group[64 + k % kSubtile] >> subtile & 1;
  return static_cast<uint8_t>((word >> (2 * subtile) & 3) | upper << 2);
}

template <Format kFormat>
PackedMatrix allocate(int64_t columns, int64_t k, Element, const MatrixStatistics&) {
  if (k > kMostInputs) {
    bad_input("{} stores matrices of up to {} inputs; this one has {}", format_name(kFormat), kMostInputs, k);
  }
  PackedMatrix matrix = make_matrix(kFormat, columns, k);
  matrix.planes.emplace_back(code_bytes(matrix));
  matrix.planes.emplace_back(table_bytes(matrix));
  return matrix;
}

void pack_panel(PackedMatrix& matrix, const PanelSource& source, const MatrixStatistics& statistics,
                PanelTail& tail) {
  const int levels = levels_of(matrix.format);
  const int64_t padded_k = squeeze_groups(matrix) * squeeze_group(matrix.format);
  const auto inputs = static_cast<size_t>(source.inputs());
  // Without sensitivities the tables treat all weights alike, and the largest are the sparse ones.
  const std::vector<float> alike(source.sensitivity.empty() ? inputs : 0, 1.0f);
  for (int64_t i = 0; i < source.column_count; ++i) {
    const int64_t column = source.panel * kPanelWidth + i;
    const std::span<const float> weights = source.weights.subspan(static_cast<size_t>(i) * inputs, inputs);
    const std::span<const float> sensitivity =
        source.sensitivity.empty() ? std::span<const float>()
                                   : source.sensitivity.subspan(static_cast<size_t>(i) * inputs, inputs);
    const std::vector<uint8_t> sparse =
        choose_sparse(weights, sensitivity, {statistics.high_sensitivity, statistics.outlier_magnitude});
    const SqueezedColumn squeezed =
        quantize_squeezed(weights, source.sensitivity.empty() ? alike : sensitivity, sparse, levels);
    std::copy_n(squeezed.table.begin(), levels, matrix.plane(1).as<BFloat16>() + column * levels);
    for (int64_t k = 0; k < padded_k; ++k) {
      const auto at = static_cast<size_t>(k);
      put_code(matrix, column, k, at < inputs ? squeezed.codes[at] : squeezed.zero_code);
      if (at >= inputs || sparse[at] == 0) continue;
      const Entry entry{static_cast<uint16_t>(i), static_cast<uint16_t>(k),
                        to_bfloat16(sparse_residual(squeezed, weights[at])).bits};
      const auto* const bytes = reinterpret_cast<const std::byte*>(&entry);
      tail.insert(tail.end(), bytes, bytes + sizeof entry);
    }
  }
}

void finish(PackedMatrix& matrix, std::span<const PanelTail> tails) {
  size_t total = 0;
  for (const PanelTail& tail : tails) total += tail.size() / sizeof(Entry);
  Plane starts(static_cast<size_t>(matrix.columns + 1) * sizeof(uint32_t));
  Plane inputs(total * sizeof(uint16_t));
  Plane values(total * sizeof(BFloat16));
  uint32_t next = 0;
  for (size_t panel = 0; panel < tails.size(); ++panel) {
    int64_t column = 0;
    uint32_t* const first = starts.as<uint32_t>() + panel * kPanelWidth;
    for (size_t at = 0; at < tails[panel].size(); at += sizeof(Entry)) {
      Entry entry;
      std::memcpy(&entry, tails[panel].data() + at, sizeof entry);
      for (; column <= entry.column; ++column) first[column] = next;
      inputs.as<uint16_t>()[next] = entry.input;
      values.as<BFloat16>()[next] = {entry.value};
      ++next;
    }
    for (; column < kPanelWidth; ++column) first[column] = next;
  }
  starts.as<uint32_t>()[matrix.columns] = next;
  matrix.planes.push_back(std::move(starts));
  matrix.planes.push_back(std::move(inputs));
  matrix.planes.push_back(std::move(values));
}

void validate(const PackedMatrix& matrix) {
  check_plane(matrix, 0, code_bytes(matrix));
  check_plane(matrix, 1, table_bytes(matrix));
  check_plane(matrix, 2, static_cast<size_t>(matrix.columns + 1) * sizeof(uint32_t));
  const uint32_t* const starts = matrix.plane(2).as<uint32_t>();
  if (starts[0] != 0 || !std::is_sorted(starts, starts + matrix.columns + 1)) {
    bad_input("the sparse part of a matrix in {} is out of order", format_name(matrix.format));
  }
  const size_t entries = starts[matrix.columns];
  check_plane(matrix, 3, entries * sizeof(uint16_t));
  check_plane(matrix, 4, entries * sizeof(BFloat16));
  const uint16_t* const inputs = matrix.plane(3).as<uint16_t>();
  for (size_t i = 0; i < entries; ++i) {
    if (inputs[i] >= matrix.k) {
      bad_input("the sparse part of a matrix in {} names input {} of {}", format_name(matrix.format),
                inputs[i], matrix.k);
    }
  }
}

void unpack_column(const PackedMatrix& matrix, Reading, int64_t column, std::span<float> out) {
  const int levels = levels_of(matrix.format);
  const BFloat16* const table = matrix.plane(1).as<BFloat16>() + column * levels;
  for (int64_t k = 0; k < matrix.k; ++k) {
    out[static_cast<size_t>(k)] = to_float(table[get_code(matrix, column, k)]);
  }
  const uint32_t* const starts = matrix.plane(2).as<uint32_t>();
  for (uint32_t i = starts[column]; i < starts[column + 1]; ++i) {
    out[matrix.plane(3).as<uint16_t>()[i]] += to_float(matrix.plane(4).as<BFloat16>()[i]);
  }
}

int64_t bytes_read(const PackedMatrix& matrix, Reading) {
  return matrix.bytes();
}

template <Format kFormat>
const FormatOperations& operations_of() {
  static constexpr FormatOperations kOperations = {allocate<kFormat>, pack_panel,    finish,
                                                   validate,          unpack_column, bytes_read};
  return kOperations;
}

}  // namespace

std::span<const uint16_t> sparse_inputs(const PackedMatrix& matrix, int64_t column) {
  const uint32_t* const starts = matrix.plane(2).as<uint32_t>() + column;
  return {matrix.plane(3).as<uint16_t>() + starts[0], starts[1] - starts[0]};
}

const FormatOperations& squeeze3_operations() {
  return operations_of<Format::kSqueeze3>();
}
const FormatOperations& squeeze4_operations() {
  return operations_of<Format::kSqueeze4>();
}

}  // namespace verbatim
