#pragma once

#include <functional>
#include <span>
#include <vector>

#include "formats/linear.h"
#include "formats/sparse_split.h"

namespace verbatim {

/// Fills in the codes of an output column and their scales, of which there is one for every 32 inputs.
using CodeRows = std::function<void(int64_t column, std::span<int8_t> codes, std::span<Float16> scales)>;

/// The blocks of a matrix in K-quants.
struct KQuantRows {
  /// Fills in the blocks of an output column, one for every 256 inputs; empty if the matrix has none.
  std::function<void(int64_t column, std::span<KQuantBlock> blocks)> read = {};
  std::vector<BlockShape> shapes = {};  ///< of each panel's blocks
};

/// The formats to pack a matrix into, and the settings of these formats.
struct PackLinearOptions {
  std::vector<Format> formats = {};  ///< at least one, each once
  Element element = Element::kBf16;  ///< for `bsfp`: the type of the weights
  SparseFractions sparse = {};       ///< for `squeeze3` and `squeeze4`: the size of the sparse part
  MatrixRows sensitivities = {};     ///< for `squeeze3` and `squeeze4`: the sensitivities; or empty
  KQuantRows blocks = {};            ///< for `k-quants`: the blocks whose weights the rows are
  CodeRows codes = {};  ///< for `q8_0`: codes whose products with their scales the rows are; or empty
  /// For `int4` and `int4-asymmetric`: whether the codes are those of a file with as many bits, and 128
  /// inputs share a scale, so that the formats keep them.
  bool codes_of_int4 = false;
};

/// A packed weight.
struct PackResult {
  LinearWeight weight;
  bool finite = true;  ///< whether no weight is NaN or infinite
};

/// Packs a matrix of columns × k, with its panels spread over the team. `rows` fills a row with the weights
/// of one output column. It is called from several threads and, for formats that must know the whole matrix
/// first, more than once for each column. Throws Error(kBadInput) if a format cannot hold the matrix.
PackResult pack_linear(int64_t columns, int64_t k, const MatrixRows& rows, const PackLinearOptions& options,
                       ThreadTeam& team);

}  // namespace verbatim
