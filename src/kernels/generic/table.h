#pragma once

#include "kernels/generic/blocks.h"
#include "kernels/generic/code_product.h"
#include "kernels/generic/elementwise.h"
#include "kernels/generic/fused_product.h"
#include "kernels/generic/halves_product.h"
#include "kernels/generic/integer.h"
#include "kernels/generic/multiply_registers.h"
#include "kernels/generic/panels_float.h"
#include "kernels/generic/read_all.h"
#include "kernels/generic/row_product.h"
#include "kernels/generic/scaled_row.h"
#include "kernels/generic/squeeze.h"
#include "kernels/generic/tiles.h"

namespace verbatim::generic {

/// Makes the kernels of an instruction set of its types of sixteen floats and of thirty-two 16-bit words, and
/// its integer dot product.
template <typename V, typename W, typename Dot>
KernelTable make_table(const char* name) {
  KernelTable table{};
  table.name = name;
  table.panels_bf16 = panels_bf16<V>;
  table.scaled_panels = scaled_panels<V>;
  table.panels_f16 = panels_f16<V>;
  table.panels_f32 = panels_f32<V>;
  fill_unpack<W>(table.unpack_tiles);
  if constexpr (V::kSums >= 4) table.fused_product = fused_product<V, W>;
  if constexpr (HasFloats<W>) table.row_product = row_product<V, W>;
  fill_integer<V, Dot>(table.integer_product);
  fill_blocks<V, Dot>(table);
  table.halves_product = halves_product<V, Dot>;
  table.squeeze3 = squeeze_product<V, Squeeze3<W>>;
  table.squeeze4 = squeeze_product<V, Squeeze4<W>>;
  table.to_bf16 = to_bf16<V>;
  table.quantize_int8 = quantize_int8<V>;
  table.quantize_int4 = quantize_int4<V>;
  table.quantize_wide = quantize_wide<V>;
  table.quantize_two_bytes = quantize_two_bytes<V>;
  table.rms_norm = rms_norm<V>;
  table.layer_norm = layer_norm<V>;
  table.silu_gate = silu_gate<V>;
  table.gelu_gate = gelu_gate<V>;
  table.gelu = gelu<V>;
  table.soft_cap = soft_cap<V>;
  table.add = add<V>;
  table.scale = scale<V>;
  table.rotate = rotate<V>;
  table.softmax_chunk = softmax_chunk<V>;
  table.softmax_chunk_f32 = softmax_chunk_f32<V>;
  fill_code_product<Dot>(table.code_product);
  table.quantize_scaled_row = quantize_scaled_row<V>;
  table.dequantize_sums = dequantize_sums<V>;
  table.read_all = read_all<V>;
  table.multiply_registers = multiply_registers<V>;
  return table;
}

}  // namespace verbatim::generic
