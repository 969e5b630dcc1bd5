#include "model/work.h"

#include <algorithm>

namespace verbatim {

double flops_per_row(const LinearWeight& weight) {
  return 2.0 * static_cast<double>(weight.columns) * static_cast<double>(weight.k);
}

double flops_per_row(const Decoder& decoder, int32_t experts) {
  const Experts& all_experts = decoder.config().experts;
  const int32_t used = experts > 0 ? std::min(experts, all_experts.used) : all_experts.used;
  double operations = flops_per_row(decoder.weights().head);
  for (const LayerWeights& layer : decoder.weights().layers) {
    double all = 0;
    each_matrix(layer, [&](const LinearWeight& weight) { all += flops_per_row(weight); });
    operations += all;
    if (layer.experts.empty()) continue;
    // All experts of a layer have the same sizes.
    const ExpertWeights& expert = layer.experts.front();
    operations -= (all_experts.count - used) * (flops_per_row(expert.gate_up) + flops_per_row(expert.down));
  }
  return operations;
}

}  // namespace verbatim
