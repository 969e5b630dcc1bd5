#pragma once

#include "kernels/kernel_table.h"

namespace verbatim {

// The tables of the instruction-set folders. Only dispatch.cpp and the folders themselves include this.
namespace scalar {
const KernelTable& table();
}
namespace avx2 {
const KernelTable& table();
}
namespace avx512 {
const KernelTable& table();            // AVX-512 F, BW, DQ and VL alone
const KernelTable& vnni_bf16_table();  // with the int8 and bf16 dot products
}  // namespace avx512
namespace amx {
const KernelTable& table();
}

}  // namespace verbatim
