#pragma once

#include <functional>
#include <span>
#include <vector>

#include "formats/linear.h"
#include "formats/sparse_split.h"

namespace verbatim {

/// What to pack a matrix into.
struct PackOptions {
  std::vector<Format> formats = {};  ///< at least one, each once
  Element element = Element::kBf16;  ///< what the weights are, for `bsfp`
  SparseFractions sparse = {};       ///< for `squeeze3` and `squeeze4`
  MatrixRows sensitivities = {};     ///< likewise; empty where none are known
};

struct PackResult {
  LinearWeight weight;
  bool finite = true;  ///< no NaN and no infinity among the weights
};

/// Packs a matrix of columns × k, panels spread over the team. `rows` fills a row with the weights of one
/// output column; it is called from several threads and, where a format must know the whole matrix first,
/// more than once for each column. Throws Error(kBadInput) where a format cannot hold the matrix.
PackResult pack_linear(int64_t columns, int64_t k, const MatrixRows& rows, const PackOptions& options,
                       ThreadTeam& team);

}  // namespace verbatim
