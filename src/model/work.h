#pragma once

#include "model/decoder.h"

namespace verbatim {

/// The floating-point operations that the product of one row with a matrix takes.
double flops_per_row(const LinearWeight& weight);

/// The floating-point operations that the products of one row with the matrices of a model take, of experts
/// with those that a row goes through; the output matrix is included, although most rows of a prompt do
/// without that one.
double flops_per_row(const Decoder& decoder);

}  // namespace verbatim
