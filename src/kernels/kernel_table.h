#pragma once

#include <cstddef>
#include <cstdint>

#include "base/float16.h"
#include "kernels/blocks.h"

/// Marks functions that are compiled for more than one instruction set: see the note in base/float16.h.
#define VERBATIM_INLINE [[gnu::always_inline]] inline

namespace verbatim {

// The kernels that differ between instruction sets. Everything around them (linear.h, attention.h, the model)
// is written once and calls them through a KernelTable. This header and all that the instruction-set folders
// include keep to plain structs and always-inlined functions: see the note in base/float16.h.

/// The number of output columns in a weight panel.
inline constexpr int64_t kPanelWidth = 16;
/// The step to a multiple of which inner dimensions are padded with zeros. It is also the group size of
/// MXFP4.
inline constexpr int64_t kInnerStep = 32;

/// Memory that is read after the weights of a product and so is prefetched while that runs, in ascending
/// order or several blocks of a page each side by side: where a hardware prefetcher starts anew in every
/// page, a core that asked for one place after the other would mostly wait.
struct FetchAhead {
  const char* from = nullptr;  ///< the beginning of the memory; null: nothing is fetched
  int shift = 0;  ///< 2^shift blocks of kFetchBlock bytes are fetched side by side; 0: in ascending order
  int64_t position = 0;    ///< the number of its bytes that were fetched before this product
  int64_t rate = kEvenly;  ///< bytes fetched per byte that the product reads, in units of 1 / kEvenly

  static constexpr int64_t kFetchBlock = 4096;
  static constexpr int kEvenlyBits = 8;
  static constexpr int64_t kEvenly = 1 << kEvenlyBits;

  /// Fetches the share of the memory that goes with bytes at .. at + bytes - 1 of what the product reads.
  VERBATIM_INLINE void fetch_with(int64_t at, int64_t bytes) const {
    fetch(position + (at * rate >> kEvenlyBits), position + ((at + bytes) * rate >> kEvenlyBits));
  }
  /// Fetches bytes begin .. end - 1 of the memory, counted in the order of fetching.
  VERBATIM_INLINE void fetch(int64_t begin, int64_t end) const {
    if (from == nullptr) return;
    end >>= shift;
    for (int64_t line = ((begin >> shift) + 63) & ~int64_t{63}; line < end; line += 64) {
      for (int64_t block = 0; block < int64_t{1} << shift; ++block) {
        __builtin_prefetch(from + block * kFetchBlock + line, 0, 2);
      }
    }
  }
};

/// The operands of a product with panels: c[r][16 p + i] = Σ_k a[r][k] · panel_p[k][i], or with `accumulate`
/// that added to c. Each output is summed over k in an order that depends on k alone: the row-independence
/// rule (docs/architecture.md).
template <typename A, typename Weight>
struct PanelProduct {
  const A* a;
  int64_t a_stride;  ///< elements between rows of a
  int64_t rows;
  const Weight* panels;  ///< the first panel; bf16 in pairs [k/2][16][2], others as [k][16]
  int64_t panel_stride;  ///< elements between panels
  int64_t panel_count;
  int64_t k;  ///< a multiple of kInnerStep
  float* c;
  int64_t c_stride;
  bool accumulate;
  FetchAhead ahead = {};  ///< prefetched meanwhile; the panels must then lie one after the other
  /// Whether the panels are in a cache already, or nothing is read behind them: then they are not asked for
  /// ahead of their use. There may be no memory behind them, and some processors take hundreds of cycles to
  /// find out that a page does not exist.
  bool near = false;
};

/// The operands of a product with panels of codes in BF16, which is scaled after it: c is the sum over
/// scale groups of scale · (product - zero · Σ activations), added one after the other, each operation
/// rounded.
template <typename A>
struct ScaledPanelProduct : PanelProduct<A, BFloat16> {
  int64_t group_inputs;     ///< the inputs of a group; the last one of a panel may have fewer
  const Float16* scales;    ///< [panels][groups][16], from the group of the first input
  const uint8_t* zeros;     ///< of the same shape, or null
  int64_t groups;           ///< the number of groups of a whole row
  const float* group_sums;  ///< with zeros: the sums of each row's activations in a group, [rows][groups]
};

/// Rows of activations in int8, the operands of products with integer weights. A group of 128 activations
/// shares a scale; for kIntegerInt8 it is a group of 32, whose scale is a power of two from 2^-60 to 2^92
/// (OCP MX's MXINT8).
struct Int8Rows {
  /// [rows][stride]. In every four codes the second and the third are exchanged, see kQuadOrder. Up to
  /// kInnerStep bytes after a row may be read; their contents do not matter.
  const int8_t* codes;
  const float* scales;  ///< [rows][k / 32]; half the quantization step, because weight tables hold doubled
                        ///< values; a group of 128 has its scale four times
  const int32_t* sums;  ///< [rows][k / 32]; sums of 32 codes
  int64_t rows;
  int64_t k;       ///< a multiple of kInnerStep
  int64_t stride;  ///< bytes between rows of codes
};

/// The order of four consecutive inputs wherever four weights or activations of 8 bits (or the low nibbles,
/// or the high nibbles, of four bytes) belong together. With this order the nibbles of 4-bit codes have two
/// uses: as bytes they are operands of integer dot products, and as 16-bit words, shifted by 0, 8, 4 and 12
/// bits, they are the pairs 0, 1, 2 and 3 of a BF16 panel.
inline constexpr int kQuadOrder[4] = {0, 2, 1, 3};

/// The escaped weights of a matrix: weights that its codes cannot express, and that overwrite their places
/// after unpacking. They are listed by half tile, which is 256 weights in the order of the unpacked tile.
struct EscapedWeights {
  const uint8_t* counts;     ///< [panel][tile][2 halves]: entries of a half, or kFullHalf, or kZeroHalf
  const uint64_t* starts;    ///< [panels + 1]: the index of each panel's first entry
  const uint8_t* positions;  ///< [entries]: the place within the half tile
  const uint16_t* values;    ///< [entries]: the bits of the weight
};
inline constexpr uint8_t kFullHalf = 254;  ///< a count: all 256 weights of the half have an entry
inline constexpr uint8_t kZeroHalf = 255;  ///< a count: all 256 weights of the half are +0, without an entry

/// Panels of a format whose tiles of 32 × 16 weights are unpacked to 16-bit numbers before they are
/// multiplied.
struct TilePanels {
  const uint8_t* codes;    ///< 256 bytes of 4-bit codes per tile
  const uint8_t* rest;     ///< the other bits of the weights, where the reading wants them
  const uint8_t* scales;   ///< 16 per tile (MXFP4, MXBF16) or 16 BF16 numbers per four tiles (BSFP)
  const uint16_t* table;   ///< 32 words, where they depend on the matrix (BSFP)
  EscapedWeights escaped;  ///< null pointers for readings without escaped weights
  int64_t tiles;           ///< the number of tiles in a panel
};

/// The readings whose tiles are unpacked to 16-bit numbers.
enum TileReading : int {
  kTileBf16,  ///< BF16 tiles, which need no unpacking
  kTileMxfp4,
  kTileBsfpFull,     ///< BSFP of BF16 weights
  kTileBsfpFullF16,  ///< BSFP of F16 weights; the result is laid out as an f16 panel
  kTileMxbf16Full,
  kTileInt4,            ///< codes less 8, exact; the product is scaled after it
  kTileInt4Asymmetric,  ///< codes, exact; the product is scaled after it
  kTileInt8,            ///< codes (512 bytes per tile), exact; the product is scaled after it
  kTileQ8_0,            ///< the same codes as upper and lower halves, in `codes` and in `rest`
  kTileReadings,
};

/// Unpacks tiles first .. first + count - 1 of a panel to `out`. `escaped` points to the index of the first
/// entry of these tiles' escaped weights, which is starts[panel] for tile 0; the call advances it to the
/// entry after them.
using UnpackTiles = void (*)(const TilePanels& panels, int64_t panel, int64_t first, int64_t count,
                             uint64_t* escaped, uint16_t* out);

/// The operands of c = a · weights, where tiles of weights are unpacked to BF16. The result has the bits that
/// panels_bf16 gives for the unpacked panels.
struct TileProduct {
  const BFloat16* a;
  int64_t a_stride;
  int64_t rows;
  /// The activations `a` once more, as tiles in the order in which tile_product and scaled_product use them
  /// if there are more than few_tile_rows() rows, and register_product if there are more than
  /// few_register_rows(): [pieces of kManyRowsPiece tiles of k][rows / 16, rounded
  /// up][tiles of the piece] [16 rows][32], with zeros in place of rows beyond the last.
  const BFloat16* tiled;
  /// The activations `a` widened to float, for fused_product and row_product alone: [tiles][rows][32].
  const float* widened;
  TilePanels weights;
  int64_t first_panel;
  int64_t panel_count;
  float* c;  ///< the result for the first panel's columns
  int64_t c_stride;
  uint16_t* scratch;    ///< one thread's: kTileScratchPanels panels of unpacked weights, or gathered rows
  float* sums;          ///< one thread's: kManyRowsScratch
  TileReading reading;  ///< one that unpacks to BF16
};
inline constexpr int64_t kTileScratchPanels = 4;
/// The largest number of rows for which each tile of weights is used for all rows at once. More rows make a
/// product of many rows, which needs whole panels in BF16; where those have to be unpacked, that pays only
/// from more rows on.
VERBATIM_INLINE constexpr int64_t few_tile_rows(TileReading reading) {
  return reading == kTileBf16 ? 16 : 32;
}
/// The largest number of rows that register_product reads where they lie. A loop that puts escaped weights in
/// place has no registers left for the places of more.
VERBATIM_INLINE constexpr int64_t few_register_rows(TileReading reading) {
  return reading == kTileBsfpFull || reading == kTileMxbf16Full ? 2 : 8;
}
/// The largest number of rows for which panels_bf16 reads panels in BF16 as fast as register_product does.
inline constexpr int64_t kFewPanelRows = 4;
/// The largest number of rows of a fused_product.
inline constexpr int64_t kMostFusedRows = 8;
/// The largest number of rows of a row_product.
inline constexpr int64_t kMostRowProductRows = 8;
/// The number of panels that a product of many rows works on at a time.
inline constexpr int64_t kManyRowsPanels = 16;
/// The number of tiles of k that a product of many rows works on at a time.
inline constexpr int64_t kManyRowsPiece = 8;
inline constexpr int64_t kManyRowsScratch = 256 * kManyRowsPanels * kPanelWidth;

/// The operands of c = a · weights, where tiles of codes are unpacked and scaled after the product, one scale
/// group after the other.
struct ScaledProduct {
  TileProduct
      tiles;  ///< of scaled_product: kTileInt4, kTileInt4Asymmetric, kTileInt8 or kTileQ8_0, with F16 scales
  const uint8_t* zeros;     ///< [panel][group][16], for kTileInt4Asymmetric
  const float* group_sums;  ///< [rows][groups]: sums of activations, in order, for kTileInt4Asymmetric
};

/// The kinds of weights of products in integers, which are scaled once per group of activations (late
/// scaling: ML-SpecQD §III-D3, Fig. 4).
enum IntegerWeights : int {
  kIntegerMxfp4,           ///< 256 bytes of codes per tile, 16 exponents per tile
  kIntegerBsfp,            ///< 256 bytes of codes per tile, 16 BF16 scales per four tiles
  kIntegerInt4,            ///< 256 bytes of codes per tile, 16 F16 scales per four tiles
  kIntegerInt4Asymmetric,  ///< as kIntegerInt4, and 16 zero points per four tiles
  kIntegerInt8,            ///< 512 bytes of codes per tile, 16 F16 scales per tile
  kIntegerUpper,           ///< 256 bytes of the upper halves of codes per tile, 16 F16 scales per tile
  kIntegerKinds,
};
struct IntegerPanels {
  const uint8_t* codes;
  const uint8_t* scales;
  const uint8_t* zeros;
  int64_t panel_count;
};

/// The operands of a product with weights that are looked up in tables (formats/squeeze.h).
struct SqueezeProduct {
  const BFloat16* a;  ///< zero from k to the padded width
  int64_t a_stride;
  int64_t rows;
  const uint8_t* codes;    ///< the codes of the first panel
  const uint16_t* tables;  ///< [panel][16 columns][8 or 16]
  int64_t groups;          ///< the number of groups of codes in a panel's column
  int64_t panel_count;
  float* c;
  int64_t c_stride;
  uint16_t* scratch;  ///< one thread's: 32 rows of activations, which AMX gathers
};

/// The softmax state of one query row over the chunks of its context seen so far.
struct SoftmaxState {
  float maximum;
  float sum;
};

/// The layouts of the codes of quantized keys and values (kv/hierarchical.h). A tile is 64 inner dimensions
/// by 16 columns, and four inner dimensions of a column lie together, in ascending order: quad q of a tile is
/// [16 columns] [inner dimensions 4 q .. 4 q + 3].
enum CodeStorage : int {
  kCodesUpper,  ///< 512 bytes per tile: byte 64 b + x has in its low half place x of quad 2 b, in its high
                ///< half that of quad 2 b + 1; codes 0 to 15
  kCodesBoth,   ///< two planes of that kind: 16 · upper + lower, codes 0 to 255
  kCodesBytes,  ///< 1024 bytes per tile, quad by quad; codes 0 to 255
  kCodeStorages,
};
/// The number of inner dimensions of a tile of codes.
inline constexpr int64_t kCodeTileInner = 64;
/// The bytes of a tile of codes in one plane.
inline constexpr int64_t code_tile_bytes(int storage) {
  return storage == kCodesBytes ? 1024 : 512;
}

/// The operands of c[r][16 p + i] = Σ_k a[r][k] · code_p[k][i] in integers: exact, and so the same on every
/// instruction set.
struct CodeProduct {
  /// [rows][2][k]: the upper and the lower bytes of each row. A number is 256 · upper + lower, both signed;
  /// its magnitude is at most kLargestRowCode.
  const int8_t* a;
  int64_t rows;          ///< any number
  const uint8_t* codes;  ///< the first panel; of kCodesUpper and kCodesBoth, its upper plane
  const uint8_t* lower;  ///< the lower plane of the first panel, for kCodesBoth
  int64_t panel_count;   ///< panels lie one after the other, k / 64 tiles each
  int64_t k;             ///< a multiple of 64, at most 256
  int32_t* c;
  int64_t c_stride;
  FetchAhead ahead = {};        ///< prefetched while `codes` are read
  FetchAhead ahead_lower = {};  ///< prefetched while `lower` is read
};
/// The largest magnitude of a code of a scaled row. Sums over kMostScaledNumbers products then stay within 31
/// bits.
inline constexpr int32_t kLargestRowCode = 32000;
/// The most numbers of a scaled row.
inline constexpr int64_t kMostScaledNumbers = 256;

/// The result of quantizing a row of products x[i] · scales[i], beside their codes.
struct ScaledRow {
  float step;  ///< the step: code · step ≈ x · scale. The largest magnitude over kLargestRowCode, or 0, with
               ///< codes of 0, if no magnitude reaches 2^-100
  float scales;  ///< Σ x[i] · scales[i]
  float zeros;   ///< Σ x[i] · zeros[i]
};

/// The rounding of kernels whose every operation has the bits of the scalar reference.
inline constexpr const char* kPortableRounding = "portable";

/// The kernels of one machine path.
struct KernelTable {
  const char* name;  ///< for people: "avx512 (vnni, bf16)"
  /// Names how the kernels round, where names of tables do not: tables of the same rounding give the same
  /// bits.
  const char* rounding = kPortableRounding;

  // Products with panels in BF16, F16 and F32.
  void (*panels_bf16)(const PanelProduct<BFloat16, BFloat16>&);
  /// The product with panels in BF16 that is scaled after it: the products of a group have the bits that
  /// panels_bf16 gives. Null where scaled_product is there.
  void (*scaled_panels)(const ScaledPanelProduct<BFloat16>&);
  void (*panels_f16)(const PanelProduct<float, Float16>&);
  void (*panels_f32)(const PanelProduct<float, float>&);
  UnpackTiles unpack_tiles[kTileReadings];
  /// The product with tiles that are unpacked to BF16. Null on machine paths where unpacking tiles and then
  /// calling panels_bf16 is as good.
  void (*tile_product)(const TileProduct&);
  /// The products with tiles that are unpacked in registers, for every reading but kTileBsfpFullF16, scaled
  /// after them where the reading is one that is. TileProduct::scratch is not used. Tiles of kTileBf16 are
  /// multiplied as they lie, which pays for more than kFewPanelRows rows.
  /// Null on machine paths that have none; tile_product and scaled_product are null where it is there.
  void (*register_product)(const ScaledProduct&);
  /// The product of 1 to kMostFusedRows rows with tiles of kTileMxfp4, kTileBsfpFull or kTileMxbf16Full,
  /// which are unpacked meanwhile. Null on machine paths where panels_bf16 is not the product of
  /// generic/panels_float.h, or where tile_product or register_product is as good.
  void (*fused_product)(const TileProduct&);
  /// The product of 1 to kMostRowProductRows rows with tiles of kTileMxfp4, kTileInt4, kTileInt4Asymmetric or
  /// kTileInt8, which are unpacked to floats in registers, scaled after it where the reading is one that is.
  /// Null on machine paths where unpacking tiles to memory is as good.
  void (*row_product)(const ScaledProduct&);
  /// The product with tiles that are scaled after it. Null on machine paths where unpacking tiles and then
  /// calling scaled_panels is as good.
  void (*scaled_product)(const ScaledProduct&);
  /// The product in integers with late scaling: c = Σ float(dot) · scale_w · scale_a over the groups of
  /// activations, in order, where `dot` is a group's sum of products of integers. For MXFP4 see
  /// generic/shared_exponents.h. The bits are the same on every instruction set.
  void (*integer_product[kIntegerKinds])(const Int8Rows& a, const IntegerPanels& weights, float* c,
                                         int64_t c_stride);
  /// The product with blocks of a shape, in integers within a block of 256 inputs (generic/blocks.h). The
  /// bits are the same on every instruction set.
  void (*block_product[kBlockShapes])(const BlockProduct&);
  /// The least number of rows with both bytes that block_product and halves_product take as words
  /// (TwoByteRow::words) and not as bytes.
  int64_t rows_in_words = kNeverInWords;
  /// The product with the codes of Q8_0, in integers within a tile of 32 inputs (generic/halves_product.h).
  /// The bits are the same on every instruction set. Null where products in BF16 are as good.
  void (*halves_product)(const HalvesProduct&);
  // Products with weights that are looked up in tables of 8 and of 16 values.
  void (*squeeze3)(const SqueezeProduct&);
  void (*squeeze4)(const SqueezeProduct&);

  // Element-wise operations on one row of n floats, n a multiple of 16.
  /// Rounds to BF16.
  void (*to_bf16)(const float* x, int64_t n, BFloat16* out);
  /// Quantizes groups of 32 (n a multiple of 32) to int8, as Int8Rows holds them.
  void (*quantize_int8)(const float* x, int64_t n, int8_t* codes, float* scales, int32_t* sums);
  /// Quantizes groups of 128, of which the last may be shorter, to integers from -127 to 127, laid out as
  /// those of quantize_int8(). The scale of a group is that of its largest magnitude, and is written once for
  /// each 32 numbers.
  void (*quantize_wide)(const float* x, int64_t n, int8_t* codes, float* scales, int32_t* sums);
  /// Quantizes groups of 128, of which the last may be shorter, to integers from -7 to 7, laid out as those
  /// of quantize_int8(). The scale of a group is that of nine tenths of its largest magnitude, and larger
  /// numbers are cut (Atom, QuaRot).
  void (*quantize_int4)(const float* x, int64_t n, int8_t* codes, float* scales, int32_t* sums);
  /// Quantizes n numbers (a multiple of 32), filled up with zeros to whole blocks of 256.
  void (*quantize_two_bytes)(const float* x, int64_t n, const TwoByteRow& out);
  /// out = x / sqrt(Σ x² / length + epsilon) · weight; x is zero from `length` to n.
  void (*rms_norm)(const float* x, const float* weight, int64_t n, int64_t length, float epsilon, float* out);
  /// out = (x - mean) / sqrt(variance + epsilon) · weight + bias, with the mean and the variance of `length`
  /// numbers; x, weight and bias are zero from `length` to n.
  void (*layer_norm)(const float* x, const float* weight, const float* bias, int64_t n, int64_t length,
                     float epsilon, float* out);
  /// out = gate / (1 + e^-gate) · up
  void (*silu_gate)(const float* gate, const float* up, int64_t n, float* out);
  /// out = gate / (1 + e^(-2 √(2/π) (gate + 0.044715 gate³))) · up: GELU in its approximation by tanh.
  void (*gelu_gate)(const float* gate, const float* up, int64_t n, float* out);
  /// out = x / (1 + e^(-2 √(2/π) (x + 0.044715 x³))): the same without a gate.
  void (*gelu)(const float* x, int64_t n, float* out);
  /// x = cap · tanh(x · scale / cap); scale and cap are positive.
  void (*soft_cap)(float* x, int64_t n, float scale, float cap);
  /// x += y
  void (*add)(float* x, const float* y, int64_t n);
  /// x *= factor
  void (*scale)(float* x, int64_t n, float factor);
  /// Rotates the pairs (x[i], x[half + i]) by the angles whose cosine and sine are given; any `half`.
  void (*rotate)(float* x, const float* cosine, const float* sine, int64_t half);
  /// Takes a chunk of n scores (a multiple of 32) into a running softmax. Scores outside visible_begin ..
  /// visible_end - 1 become minus infinity, the others are multiplied by `scale`, which is positive. Writes
  /// probabilities relative to the new maximum in BF16, whose rounded values are summed. Returns the factor
  /// by which sums over earlier chunks must be multiplied.
  float (*softmax_chunk)(float* scores, int64_t n, int64_t visible_begin, int64_t visible_end, float scale,
                         SoftmaxState* state, BFloat16* probabilities);
  /// Takes a chunk of scores into a running softmax as softmax_chunk() does, with probabilities in F32, which
  /// may overwrite the scores.
  float (*softmax_chunk_f32)(float* scores, int64_t n, int64_t visible_begin, int64_t visible_end,
                             float scale, SoftmaxState* state, float* probabilities);

  /// The product with the codes of quantized keys or values.
  void (*code_product[kCodeStorages])(const CodeProduct&);
  /// Whether code_product multiplies several rows in tiles, so that its time hardly depends on their number.
  bool code_product_in_tiles = false;
  /// Quantizes the products x[i] · scales[i] of n numbers (a multiple of 64, at most kMostScaledNumbers) to
  /// codes for a CodeProduct: [2][n]. The bits are the same on every instruction set.
  ScaledRow (*quantize_scaled_row)(const BFloat16* x, const BFloat16* scales, const BFloat16* zeros,
                                   int64_t n, int8_t* codes);
  /// Turns n sums of a CodeProduct (a multiple of 16) back into floats: out = products · step + constant, or
  /// adds that to out if `accumulate`. The bits are the same on every instruction set.
  void (*dequantize_sums)(const int32_t* products, int64_t n, float step, float constant, bool accumulate,
                          float* out);

  /// The xor of all 64-bit words, the last one filled up with zeros. Benchmarks measure with it how fast
  /// memory can be read, and compare products with that.
  uint64_t (*read_all)(const std::byte* data, int64_t bytes);
  /// Does the multiplications and additions of panels_bf16 on registers alone, `steps` times. Benchmarks
  /// measure with it how fast the arithmetic can be. Returns the number of operations, and in out[16] their
  /// results.
  int64_t (*multiply_registers)(int64_t steps, float* out);
};

}  // namespace verbatim
