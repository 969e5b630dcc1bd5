#pragma once

#include <cstdint>

#include "base/thread_team.h"
#include "formats/sparse_split.h"

namespace verbatim {

/// A variant of the formats `squeeze3` and `squeeze4`, for comparisons (thesis B.2): most of them are no
/// formats, so that their values take the place of a model's weights in a format that holds floats.
struct SqueezeVariant {
  int bits = 3;            ///< of a code: 2, 3 or 4
  int64_t group = 0;       ///< the neighbouring inputs of a column that share a table; 0: all
  bool uniform = false;    ///< tables of values at equal distances, as round_to_nearest() chooses them
  SparseFractions sparse;  ///< the weights that are kept apart
};

/// Makes the rows of a matrix of columns × k as the variant holds them. With 3 or 4 bits and neither groups
/// nor uniform tables they are those of `squeeze3` and `squeeze4`, bit for bit. `sensitivities` may be empty,
/// and uniform tables do not use them. Reads the matrix several times before it returns, and the rows refer
/// to what `weights` and `sensitivities` do.
MatrixRows squeezed_rows(int64_t columns, int64_t k, const MatrixRows& weights,
                         const MatrixRows& sensitivities, const SqueezeVariant& variant, ThreadTeam& team);

}  // namespace verbatim
