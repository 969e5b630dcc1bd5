#include <algorithm>
#include <numeric>

#include "prepare/preparation.h"

namespace verbatim {

Preparation prepare_atom(const Checkpoint& checkpoint, const MatrixInputs& calibration) {
  Preparation preparation;
  for (const MatrixSpec& spec : matrix_specs(checkpoint.config)) {
    const std::vector<float>& squares = calibration.at(spec.name).squares;
    std::vector<int32_t>& order = preparation.orders[spec.name];
    order.resize(squares.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return squares[static_cast<size_t>(a)] < squares[static_cast<size_t>(b)];
    });
  }
  return preparation;
}

}  // namespace verbatim
