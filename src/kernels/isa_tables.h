#pragma once

#include "kernels/kernel_table.h"

namespace verbatim {

// The tables of the instruction-set folders. Only dispatch.cpp and the folders themselves include this. The
// portable ones take from the fast tables what the formats alone define to the last bit, products in integers
// and all that is element by element, and the products in BF16 from tables with fused multiply-adds.
namespace scalar {
const KernelTable& table();
}
namespace avx2 {
const KernelTable& table();       // AVX2, FMA and F16C alone
const KernelTable& vnni_table();  // with AVX-VNNI's int8 dot products
}  // namespace avx2
namespace avx512 {
const KernelTable& table();            // AVX-512 F, BW, DQ and VL alone
const KernelTable& vnni_bf16_table();  // with the int8 and bf16 dot products
const KernelTable& portable_vnni_bf16_table();
}  // namespace avx512
namespace amx {
const KernelTable& table();
const KernelTable& portable_table();
}  // namespace amx
namespace neon {
const KernelTable& table();            // what every aarch64 has
const KernelTable& dotprod_table();    // with dot products of bytes
const KernelTable& bf16_i8mm_table();  // with multiply-adds of BF16 and mixed dot products, too
}  // namespace neon

}  // namespace verbatim
