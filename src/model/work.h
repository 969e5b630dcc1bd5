#pragma once

#include "model/decoder.h"

namespace verbatim {

/// The floating-point operations that the product of one row with a matrix takes.
double flops_per_row(const LinearWeight& weight);

/// The floating-point operations that the products of one row with the matrices of a model take, of a mixture
/// of experts with the `experts` that the row goes through (0: as many as the model uses). The output matrix
/// is included, although most rows of a prompt do without that one.
double flops_per_row(const Decoder& decoder, int32_t experts = 0);

}  // namespace verbatim
