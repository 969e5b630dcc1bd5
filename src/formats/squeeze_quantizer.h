#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/float16.h"

namespace verbatim {

/// One output column after sensitivity-based non-uniform quantization (SqueezeLLM; thesis §3.3): a lookup
/// table of 8 (`squeeze3`) or 16 (`squeeze4`) values, or 4 (squeeze_variant.h), and a code for each weight.
///
/// Entries of the table are ascending. With fewer distinct weights than levels the last entry repeats;
/// entries beyond `levels` are zero. Each entry is a normal, finite BF16 number or zero, so that products use
/// it exactly on every instruction set.
struct SqueezedColumn {
  std::array<BFloat16, 16> table{};
  std::vector<uint8_t> codes;
  /// The code of the entry nearest to zero, which the weights of the sparse part have.
  uint8_t zero_code = 0;

  float value(uint8_t code) const { return to_float(table[code]); }
};

/// Quantizes a column by weighted k-means (thesis eq. 3.5): finds the table that minimises the sum of
/// sensitivity × (weight − entry)², rounds its entries to BF16, and gives every weight the code of the
/// nearest entry, the lower of two.
///
/// `sensitivities` are Fisher information (mean squared gradients), one for each weight. If there are none,
/// the magnitude |w| takes the place of the sensitivity; if all are 1, this is the sensitivity-agnostic
/// variant (thesis B.2). Every weight counts with at least a millionth of the mean sensitivity, so that
/// entries which the sensitive weights do not need go to the others. `is_sparse` is 1 for weights of the
/// sparse part, which take no part in the clustering and get the zero code; if it is empty, there are none.
/// NaN and infinite weights count as zero, and so do NaN, infinite and negative sensitivities. `levels` is 4,
/// 8 or 16.
SqueezedColumn quantize_squeezed(std::span<const float> weights, std::span<const float> sensitivities,
                                 std::span<const uint8_t> is_sparse, int levels);

/// The value of a weight's entry in the sparse part: the weight less the table's entry of the zero code.
float sparse_residual(const SqueezedColumn& column, float weight);

}  // namespace verbatim
