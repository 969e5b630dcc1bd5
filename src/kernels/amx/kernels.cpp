#include "kernels/amx/products.h"
#include "kernels/isa_tables.h"

namespace verbatim::amx {

namespace {

void panels_mxfp4_w4a8_by_rows(const Int8Rows& a, const Mxfp4Panels& weights, float* c, int64_t c_stride) {
  if (a.rows > kVectorRows) {
    panels_mxfp4_w4a8(a, weights, c, c_stride);
  } else {
    avx512::vnni_bf16_table().panels_mxfp4_w4a8(a, weights, c, c_stride);
  }
}

}  // namespace

const KernelTable& table() {
  static const KernelTable kernels = [] {
    KernelTable t = avx512::vnni_bf16_table();
    t.name = "amx (int8, bf16)";
    t.panels_bf16 = panels_bf16;
    t.panels_mxfp4_w4a8 = panels_mxfp4_w4a8_by_rows;
    return t;
  }();
  return kernels;
}

}  // namespace verbatim::amx
