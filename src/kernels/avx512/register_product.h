#pragma once

#include "kernels/kernel_table.h"

namespace verbatim::avx512 {

/// KernelTable::register_product by the dot product of BF16.
void register_product(const ScaledProduct& product);

}  // namespace verbatim::avx512
