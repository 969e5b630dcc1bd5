#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/float16.h"

namespace verbatim {

/// One output column after sensitivity-based non-uniform quantization (SqueezeLLM; thesis §3.3): a lookup
/// table of 8 (`squeeze3`) or 16 (`squeeze4`) values and a code for each weight.
///
/// Entries are ascending; with fewer distinct weights than levels the last one repeats. Those above `levels`
/// are zero. Each entry is a normal, finite BF16 number or zero, so that a product takes it exactly on every
/// instruction set.
struct SqueezedColumn {
  std::array<BFloat16, 16> table{};
  std::vector<uint8_t> codes;
  /// The entry nearest to zero: what the weights of the sparse part have as their code.
  uint8_t zero_code = 0;

  float value(uint8_t code) const { return to_float(table[code]); }
};

/// Weighted k-means over the column (thesis eq. 3.5): the table that minimises the sum of sensitivity ×
/// (weight − entry)², entries rounded to BF16, every weight with the code of the entry nearest to it, the
/// lower one of two.
///
/// `sensitivities` are Fisher information (mean squared gradients), as many as weights; without any (empty),
/// the magnitude |w| stands in for the sensitivity; all ones give the sensitivity-agnostic variant (thesis
/// B.2). Every weight counts with at least a millionth of the mean sensitivity, so that levels that the
/// sensitive ones leave over go to the others. `is_sparse` is 1 where the sparse part holds the weight; those
/// take no part in the clustering and get the zero code. Empty: none. A weight that is NaN or infinite counts
/// as zero, and so does such a sensitivity, or a negative one. `levels` is 8 or 16.
SqueezedColumn quantize_squeezed(std::span<const float> weights, std::span<const float> sensitivities,
                                 std::span<const uint8_t> is_sparse, int levels);

/// What the sparse part adds to the dense part to give the weight: w − the entry of the zero code.
float sparse_residual(const SqueezedColumn& column, float weight);

}  // namespace verbatim
