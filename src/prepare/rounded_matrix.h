#pragma once

#include <cstdint>
#include <vector>

#include "base/float16.h"
#include "base/thread_team.h"
#include "formats/pack_linear.h"
#include "prepare/preparation.h"

namespace verbatim {

/// The number of inputs that share a scale.
inline constexpr int64_t kRoundedGroup = 128;

/// A matrix in codes of 3 or 4 bits, that is from -4 to 3 or from -8 to 7: a weight is its code times the
/// scale of its group. `int4` holds either, as it is.
struct RoundedMatrix {
  int64_t columns = 0;          ///< outputs
  int64_t k = 0;                ///< inputs
  std::vector<int8_t> codes;    ///< [columns][k]
  std::vector<Float16> scales;  ///< [columns][groups]

  int64_t groups() const { return ceil_div(k, kRoundedGroup); }
  Float16 scale(int64_t column, int64_t input) const {
    return scales[static_cast<size_t>(column * groups() + input / kRoundedGroup)];
  }
  float value(int64_t column, int64_t input) const {
    return static_cast<float>(codes[static_cast<size_t>(column * k + input)]) *
           to_float(scale(column, input));
  }
};

/// The code of so many bits whose product with a scale is nearest to a weight; 0 if the scale is 0.
int8_t nearest_code(double weight, float scale, int bits);

/// Makes a matrix whose scales are those that `int4` would choose with so many bits: of a few near the full
/// range of a group the one with the smallest squared error. Its codes are 0. NaN and infinity count as zero.
RoundedMatrix choose_scales(const DenseMatrix& weights, int bits, ThreadTeam& team);

/// Rounds each weight by itself to the nearest code, with the scales of choose_scales().
RoundedMatrix round_each(const DenseMatrix& weights, int bits, ThreadTeam& team);

/// Packs a matrix into `int4` with its codes and scales. `weights` are those that were rounded.
PackResult pack_rounded(const DenseMatrix& weights, const RoundedMatrix& rounded, ThreadTeam& team);

/// Packs a matrix into `int4` with every weight rounded to nearest by itself, to 3 or 4 bits.
PackResult pack_to_nearest(const DenseMatrix& weights, int bits, ThreadTeam& team);

}  // namespace verbatim
