#pragma once

#include "kernels/kernel_table.h"

namespace verbatim::amx {

void panels_bf16(const PanelProduct<BFloat16, BFloat16>& product);

/// A product of more than few_tile_rows() rows, blocked for the caches: the same bits as panels_bf16.
struct ManyRowsProduct {
  const BFloat16* a;  ///< in tiles: TileProduct::tiled
  int64_t rows;
  int64_t tiles;           ///< k / 32
  const BFloat16* panels;  ///< the first panel
  int64_t panel_stride;
  int64_t panel_count;
  float* c;  ///< of the first panel
  int64_t c_stride;
  float* sums;  ///< kManyRowsScratch
};
void many_rows_bf16(const ManyRowsProduct& product);
void tile_product(const TileProduct& product);
void scaled_product(const ScaledProduct& product);
/// The part of a product of many rows that reads rows laid out as tiles.
void scaled_many_rows(const ScaledProduct& product);

/// The product in integers on vectors, for few rows.
void few_rows_mxfp4(const Int8Rows& a, const IntegerPanels& weights, float* c, int64_t c_stride);
void few_rows_bsfp(const Int8Rows& a, const IntegerPanels& weights, float* c, int64_t c_stride);

/// The product in integers on tiles, for more rows. The bits are the same, since sums are of integers and
/// scaling is done in the same order.
void integer_mxfp4(const Int8Rows& a, const IntegerPanels& weights, float* c, int64_t c_stride);
void integer_bsfp(const Int8Rows& a, const IntegerPanels& weights, float* c, int64_t c_stride);
void integer_int4(const Int8Rows& a, const IntegerPanels& weights, float* c, int64_t c_stride);
void integer_int4_asymmetric(const Int8Rows& a, const IntegerPanels& weights, float* c, int64_t c_stride);
void integer_int8(const Int8Rows& a, const IntegerPanels& weights, float* c, int64_t c_stride);

/// The product with blocks on tiles, for more rows than few. The bits are those of generic/blocks.h.
void block_product(const BlockProduct& product, BlockShape shape);

void code_product_upper(const CodeProduct& product);
void code_product_both(const CodeProduct& product);
void code_product_bytes(const CodeProduct& product);

void squeeze3(const SqueezeProduct& product);
void squeeze4(const SqueezeProduct& product);

}  // namespace verbatim::amx
