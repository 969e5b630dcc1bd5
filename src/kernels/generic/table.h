#pragma once

#include "kernels/generic/elementwise.h"
#include "kernels/generic/mxfp4.h"
#include "kernels/generic/panels_float.h"

namespace verbatim::generic {

/// The kernels of an instruction set, from its vector of sixteen floats, its integer dot product of MXFP4
/// weights and its unpacking of them.
template <typename V, typename Dot>
KernelTable make_table(const char* name, decltype(KernelTable::unpack_mxfp4) unpack_mxfp4) {
  KernelTable table{};
  table.name = name;
  table.panels_bf16 = panels_bf16<V>;
  table.panels_f16 = panels_f16<V>;
  table.panels_f32 = panels_f32<V>;
  table.panels_mxfp4_w4a8 = panels_mxfp4_w4a8<V, Dot>;
  table.unpack_mxfp4 = unpack_mxfp4;
  table.to_bf16 = to_bf16<V>;
  table.quantize_int8 = quantize_int8<V>;
  table.rms_norm = rms_norm<V>;
  table.silu_gate = silu_gate<V>;
  table.add = add<V>;
  table.scale = scale<V>;
  table.rotate = rotate<V>;
  table.softmax_chunk = softmax_chunk<V>;
  return table;
}

}  // namespace verbatim::generic
