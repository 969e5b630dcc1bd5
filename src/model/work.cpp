#include "model/work.h"

namespace verbatim {

double flops_per_row(const LinearWeight& weight) {
  return 2.0 * static_cast<double>(weight.columns) * static_cast<double>(weight.k);
}

double flops_per_row(const Decoder& decoder) {
  double operations = 0;
  each_matrix(decoder.weights(), [&](const LinearWeight& weight) { operations += flops_per_row(weight); });
  return operations;
}

}  // namespace verbatim
