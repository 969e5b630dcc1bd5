#pragma once

#include "kernels/kernel_table.h"

namespace verbatim::amx {

void panels_bf16(const PanelProduct<BFloat16, BFloat16>& product);

/// For more rows than `kVectorRows`; fewer are the business of the AVX-512 kernel, which gives the same bits
/// (the products are integers, the scaling is in the same order).
void panels_mxfp4_w4a8(const Int8Rows& a, const Mxfp4Panels& weights, float* c, int64_t c_stride);
inline constexpr int64_t kVectorRows = 4;

}  // namespace verbatim::amx
