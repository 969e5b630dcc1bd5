#include "kernels/amx/products.h"
#include "kernels/amx/tiles.h"
#include "kernels/isa_tables.h"

namespace verbatim::amx {

namespace {

using IntegerProduct = void (*)(const Int8Rows&, const IntegerPanels&, float*, int64_t);

/// The largest number of rows for which integer products are faster on vectors than on tiles.
constexpr int64_t integer_vector_rows(int kind) {
  return kind == kIntegerInt8 ? 4 : 2;
}

/// The product in integers: on vectors for few rows, on tiles for more, with the same bits.
template <int kKind, IntegerProduct kTiles>
void integer_by_rows(const Int8Rows& a, const IntegerPanels& weights, float* c, int64_t c_stride) {
  if (a.rows > integer_vector_rows(kKind)) return kTiles(a, weights, c, c_stride);
  switch (kKind) {
    case kIntegerMxfp4:
      return few_rows_mxfp4(a, weights, c, c_stride);
    case kIntegerBsfp:
      return few_rows_bsfp(a, weights, c, c_stride);
    default:
      return avx512::vnni_bf16_table().integer_product[kKind](a, weights, c, c_stride);
  }
}

/// The largest number of rows for which products with codes from memory are faster on vectors than on tiles.
constexpr int64_t code_vector_rows(int storage) {
  return storage == kCodesBytes ? 2 : 1;
}

template <int kStorage, void (*kTiles)(const CodeProduct&)>
void codes_by_rows(const CodeProduct& p) {
  if (p.rows > code_vector_rows(kStorage)) {
    kTiles(p);
  } else {
    avx512::vnni_bf16_table().code_product[kStorage](p);
  }
}

/// The largest number of rows for which products with blocks are faster on vectors than on tiles.
constexpr int64_t kBlockVectorRows = 8;

/// The product with blocks: on vectors for few rows, on tiles for more, with the same bits.
template <BlockShape kShape>
void blocks_by_rows(const BlockProduct& p) {
  if (p.row_count > kBlockVectorRows) {
    block_product(p, kShape);
  } else {
    avx512::vnni_bf16_table().block_product[kShape](p);
  }
}

/// KernelTable::multiply_registers: four chains of tile products, as in a block of 32 rows by two panels.
int64_t multiply_registers(int64_t steps, float* out) {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) config.set(tile, 16, 64);
  config.load();  // and with it all tiles are zero
  for (int64_t step = 0; step < steps; ++step) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  alignas(64) float sums[256];
  _tile_stored(0, sums, 64);
  _tile_release();
  for (int i = 0; i < 16; ++i) out[i] = sums[i];
  return steps * 4 * 2 * 16 * 16 * 32;
}

}  // namespace

const KernelTable& table() {
  static const KernelTable kernels = [] {
    KernelTable t = avx512::vnni_bf16_table();
    t.name = "amx (int8, bf16)";
    t.rounding = "bf16 tiles";
    t.panels_bf16 = panels_bf16;
    t.scaled_panels = nullptr;
    t.register_product = nullptr;
    t.tile_product = tile_product;
    t.scaled_product = scaled_product;
    t.integer_product[kIntegerMxfp4] = integer_by_rows<kIntegerMxfp4, integer_mxfp4>;
    t.integer_product[kIntegerBsfp] = integer_by_rows<kIntegerBsfp, integer_bsfp>;
    t.integer_product[kIntegerInt4] = integer_by_rows<kIntegerInt4, integer_int4>;
    t.integer_product[kIntegerInt4Asymmetric] =
        integer_by_rows<kIntegerInt4Asymmetric, integer_int4_asymmetric>;
    t.integer_product[kIntegerInt8] = integer_by_rows<kIntegerInt8, integer_int8>;
    t.block_product[kBlockQ2] = blocks_by_rows<kBlockQ2>;
    t.block_product[kBlockQ3] = blocks_by_rows<kBlockQ3>;
    t.block_product[kBlockQ4] = blocks_by_rows<kBlockQ4>;
    t.block_product[kBlockQ5] = blocks_by_rows<kBlockQ5>;
    t.block_product[kBlockQ6] = blocks_by_rows<kBlockQ6>;
    // Tiles take bytes, vectors get few rows, and halves_product is null.
    t.rows_in_words = kNeverInWords;
    t.squeeze3 = squeeze3;
    t.squeeze4 = squeeze4;
    t.code_product_in_tiles = true;
    t.code_product[kCodesUpper] = codes_by_rows<kCodesUpper, code_product_upper>;
    t.code_product[kCodesBoth] = codes_by_rows<kCodesBoth, code_product_both>;
    t.code_product[kCodesBytes] = codes_by_rows<kCodesBytes, code_product_bytes>;
    t.multiply_registers = multiply_registers;
    return t;
  }();
  return kernels;
}

const KernelTable& portable_table() {
  static const KernelTable kernels = [] {
    const KernelTable& plain = avx512::table();
    KernelTable t = table();
    t.name = "amx (int8, bf16), portable";
    t.rounding = kPortableRounding;
    t.panels_bf16 = plain.panels_bf16;
    t.scaled_panels = plain.scaled_panels;
    t.fused_product = plain.fused_product;
    t.tile_product = nullptr;
    t.scaled_product = nullptr;
    t.halves_product = avx512::portable_vnni_bf16_table().halves_product;
    t.rows_in_words = avx512::portable_vnni_bf16_table().rows_in_words;
    t.squeeze3 = plain.squeeze3;
    t.squeeze4 = plain.squeeze4;
    t.multiply_registers = plain.multiply_registers;
    return t;
  }();
  return kernels;
}

}  // namespace verbatim::amx
