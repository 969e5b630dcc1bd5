#pragma once

#include <cstddef>
#include <cstdint>

#include "base/float16.h"

/// For everything that more than one instruction set compiles: see the note in base/float16.h.
#define VERBATIM_INLINE [[gnu::always_inline]] inline

namespace verbatim {

// The kernels that differ between instruction sets. Everything around them (linear.h, attention.h, the model)
// is written once and calls them through a KernelTable. This header and all that the instruction-set folders
// include keep to plain structs and always-inlined functions: see the note in base/float16.h.

/// Output columns per weight panel.
inline constexpr int64_t kPanelWidth = 16;
/// Inner dimensions are padded with zeros to a multiple of this; also the group size of MXFP4.
inline constexpr int64_t kInnerStep = 32;

/// Memory that will be read after what a product reads, to be fetched beside it. It is fetched in blocks of a
/// page side by side, for a core that asks for one place after the other waits most of the time: a hardware
/// prefetcher starts anew in every page.
struct FetchAhead {
  const char* from = nullptr;  ///< or null: nothing
  int shift = 0;               ///< 2^shift blocks of kFetchBlock bytes
  int64_t position = 0;        ///< how many bytes of them were fetched before this product
  int64_t rate = kEvenly;      ///< kEvenly: as many bytes as are read; half of that: half as many

  static constexpr int64_t kFetchBlock = 4096;
  static constexpr int kEvenlyBits = 8;
  static constexpr int64_t kEvenly = 1 << kEvenlyBits;

  /// Fetches what belongs beside bytes at .. at + bytes - 1 of what is read.
  VERBATIM_INLINE void beside(int64_t at, int64_t bytes) const {
    fetch(position + (at * rate >> kEvenlyBits), position + ((at + bytes) * rate >> kEvenlyBits));
  }
  /// Fetches the bytes begin .. end - 1, in the order in which they are fetched.
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

/// c[r][16 p + i] = Σ_k a[r][k] · panel_p[k][i], added to what c holds if `accumulate`.
/// Each output is summed over k in an order that depends on k alone: the row-independence rule
/// (docs/architecture.md).
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
  FetchAhead ahead = {};  ///< the panels lie one after the other where there is something to fetch
};

/// Rows of activations in int8, as products with integer weights want them, with a scale per group of 128 or,
/// for kIntegerInt8, of 32: powers of two from 2^-60 to 2^92 (OCP MX's MXINT8).
struct Int8Rows {
  /// [rows][stride]; in every four the second and the third are exchanged, see kQuadOrder. What follows a row
  /// within kInnerStep bytes may be read, and may be anything.
  const int8_t* codes;
  const float* scales;  ///< [rows][k / 32]; half the quantization step, because weight tables hold doubled
                        ///< values; a group of 128 has its scale four times
  const int32_t* sums;  ///< [rows][k / 32]; sums of 32 codes
  int64_t rows;
  int64_t k;       ///< a multiple of kInnerStep
  int64_t stride;  ///< bytes between rows of codes
};

/// Which of four consecutive inputs stands first, second, ... wherever four weights or activations of 8 bits
/// (or the low, or the high nibbles of four bytes) belong together. With this order the nibbles of 4-bit
/// codes serve two masters: taken as bytes they are operands of integer dot products, and taken as 16-bit
/// words, shifted by 0, 8, 4 and 12 bits, they are the pairs 0, 1, 2 and 3 of a BF16 panel.
inline constexpr int kQuadOrder[4] = {0, 2, 1, 3};

/// Weights that do not lie in the order of a tile but for its escaped ones: places to overwrite after
/// unpacking. A half tile is 256 weights in the order of the unpacked tile.
struct EscapedWeights {
  const uint8_t* counts;     ///< [panel][tile][2 halves]; or kFullHalf, or kZeroHalf
  const uint64_t* starts;    ///< [panels + 1]: where a panel's entries begin
  const uint8_t* positions;  ///< within the half tile
  const uint16_t* values;    ///< the weight's own bits
};
inline constexpr uint8_t kFullHalf = 254;  ///< all 256 weights have an entry
inline constexpr uint8_t kZeroHalf = 255;  ///< all are +0, and none has an entry

/// Panels of a format whose tiles of 32 × 16 weights are unpacked to 16-bit numbers before they are
/// multiplied.
struct TilePanels {
  const uint8_t* codes;    ///< 256 bytes of 4-bit codes per tile
  const uint8_t* rest;     ///< the other bits of the weights, where the reading wants them
  const uint8_t* scales;   ///< 16 per tile (MXFP4, MXBF16) or 16 BF16 numbers per four tiles (BSFP)
  const uint16_t* table;   ///< 32 words, where they depend on the matrix (BSFP)
  EscapedWeights escaped;  ///< null pointers for readings without
  int64_t tiles;           ///< per panel
};

/// What the unpacking of a tile knows how to read.
enum TileReading : int {
  kTileBf16,  ///< tiles as they are
  kTileMxfp4,
  kTileBsfpFull,     ///< of BF16 weights
  kTileBsfpFullF16,  ///< of F16 weights; the result is laid out as an f16 panel
  kTileMxbf16Full,
  kTileInt4,            ///< codes less 8, exact; to be scaled after the product
  kTileInt4Asymmetric,  ///< codes, exact; likewise
  kTileInt8,            ///< codes (512 bytes per tile), exact; likewise
  kTileReadings,
};

/// Unpacks tiles first .. first + count - 1 of a panel. `escaped` is the index of the next entry of the
/// panel's escaped weights: starts[panel] for tile 0, then what the call before left.
using UnpackTiles = void (*)(const TilePanels& panels, int64_t panel, int64_t first, int64_t count,
                             uint64_t* escaped, uint16_t* out);

/// c = a · weights through unpacked tiles: the same bits as panels_bf16 on the unpacked panels.
struct TileProduct {
  const BFloat16* a;
  int64_t a_stride;
  int64_t rows;
  /// For tile_product and scaled_product with more than few_tile_rows() rows, the same in tiles that lie in
  /// the order in which they are used: [pieces of kManyRowsPiece tiles of k][rows / 16, rounded up][tiles of
  /// the piece][16 rows][32], where there are zeros instead of rows beyond the last.
  const BFloat16* tiled;
  TilePanels weights;
  int64_t first_panel;
  int64_t panel_count;
  float* c;  ///< of the first panel
  int64_t c_stride;
  uint16_t* scratch;    ///< one thread's: kTileScratchPanels panels of unpacked weights, or gathered rows
  float* sums;          ///< one thread's: kManyRowsScratch
  TileReading reading;  ///< one that unpacks to BF16
};
inline constexpr int64_t kTileScratchPanels = 4;
/// Up to so many rows a tile of weights is used for all of them at once; more are a product of many rows,
/// which wants panels in BF16 and so is worth it later where they have to be unpacked.
VERBATIM_INLINE constexpr int64_t few_tile_rows(TileReading reading) {
  return reading == kTileBf16 ? 16 : 32;
}
/// Panels, and sums of theirs, that a product of many rows works on at a time.
inline constexpr int64_t kManyRowsPanels = 16;
/// Tiles of k that it works on at a time.
inline constexpr int64_t kManyRowsPiece = 8;
inline constexpr int64_t kManyRowsScratch = 256 * kManyRowsPanels * kPanelWidth;

/// What the products of rows with the codes of a scale group add to the results for a panel's columns:
/// c += scale · (product - zero · Σ activations), each operation rounded; stored, if not `accumulate`.
struct ScaledGroup {
  const float* products;  ///< [rows][products_stride]
  int64_t products_stride;
  int64_t rows;
  const Float16* scales;    ///< 16
  const uint8_t* zeros;     ///< 16, or null
  const float* group_sums;  ///< with zeros: of a row's activations in the group, one after the other
  int64_t group_sums_stride;
  float* c;
  int64_t c_stride;
  bool accumulate;
};

/// c = a · weights through unpacked tiles whose groups are scaled after the product, one group after the
/// other.
struct ScaledProduct {
  TileProduct tiles;        ///< kTileInt4, kTileInt4Asymmetric or kTileInt8; scales are F16
  const uint8_t* zeros;     ///< [panel][group][16]: kTileInt4Asymmetric
  const float* group_sums;  ///< [rows][groups], of the activations, one after the other: likewise
};

/// Weights for products in integers, which are scaled once per group of activations (ML-SpecQD §III-D3, Fig.
/// 4: late scaling).
enum IntegerWeights : int {
  kIntegerMxfp4,           ///< 256 bytes of codes per tile, 16 exponents per tile
  kIntegerBsfp,            ///< 256 bytes of codes per tile, 16 BF16 scales per four tiles
  kIntegerInt4,            ///< 256 bytes of codes per tile, 16 F16 scales per four tiles
  kIntegerInt4Asymmetric,  ///< likewise, and 16 zero points per four tiles
  kIntegerInt8,            ///< 512 bytes of codes per tile, 16 F16 scales per tile
  kIntegerKinds,
};
struct IntegerPanels {
  const uint8_t* codes;
  const uint8_t* scales;
  const uint8_t* zeros;
  int64_t panel_count;
};

/// A product with looked-up weights (formats/squeeze.h).
struct SqueezeProduct {
  const BFloat16* a;  ///< zero from k to the padded width
  int64_t a_stride;
  int64_t rows;
  const uint8_t* codes;    ///< of the first panel
  const uint16_t* tables;  ///< [panel][16 columns][8 or 16]
  int64_t groups;          ///< of codes per panel and column
  int64_t panel_count;
  float* c;
  int64_t c_stride;
  uint16_t* scratch;  ///< one thread's: a panel of unpacked weights, or 32 rows of activations
};

/// The softmax state of one query row over the chunks of its context seen so far.
struct SoftmaxState {
  float maximum;
  float sum;
};

/// How the codes of quantized keys and values lie (kv/hierarchical.h). In all of them a tile is 64 inner
/// dimensions by 16 columns, and four inner dimensions of a column belong together, in their own order: quad
/// q of a tile is [16 columns][inner dimensions 4 q .. 4 q + 3].
enum CodeStorage : int {
  kCodesUpper,  ///< 512 bytes per tile: byte 64 b + x has in its low half place x of quad 2 b, in its high
                ///< half that of quad 2 b + 1; codes 0 to 15
  kCodesBoth,   ///< two planes of that kind: 16 · upper + lower, codes 0 to 255
  kCodesBytes,  ///< 1024 bytes per tile, quad by quad; codes 0 to 255
  kCodeStorages,
};
/// Inner dimensions of a tile of codes, and its bytes in a plane.
inline constexpr int64_t kCodeTileInner = 64;
inline constexpr int64_t code_tile_bytes(int storage) {
  return storage == kCodesBytes ? 1024 : 512;
}

/// c[r][16 p + i] = Σ_k a[r][k] · code_p[k][i] in integers, exactly: the same on every instruction set.
struct CodeProduct {
  /// [rows][2][k]: the upper and the lower bytes of a row; a number is 256 · upper + lower, both signed, and
  /// at most kLargestRowCode.
  const int8_t* a;
  int64_t rows;          ///< any number
  const uint8_t* codes;  ///< the first panel: kCodesUpper and kCodesBoth: the upper plane
  const uint8_t* lower;  ///< kCodesBoth: the lower plane; otherwise unused
  int64_t panel_count;   ///< panels lie one after the other, k / 64 tiles each
  int64_t k;             ///< a multiple of 64, at most 256
  int32_t* c;
  int64_t c_stride;
  FetchAhead ahead = {};        ///< beside the codes, or their upper plane
  FetchAhead ahead_lower = {};  ///< beside the lower plane
};
/// So that sums over 256 codes stay within 31 bits.
inline constexpr int32_t kLargestRowCode = 32000;
inline constexpr int64_t kMostScaledNumbers = 256;

/// What becomes of a row of numbers x beside their codes.
struct ScaledRow {
  float step;    ///< a code times this is x · scale: the largest magnitude over kLargestRowCode; where no
                 ///< magnitude reaches 2^-100, codes and step are 0
  float scales;  ///< Σ x[i] · scales[i]
  float zeros;   ///< Σ x[i] · zeros[i]
};

struct KernelTable {
  const char* name;  ///< for people: "avx512 (vnni, bf16)"

  void (*panels_bf16)(const PanelProduct<BFloat16, BFloat16>&);
  void (*panels_f16)(const PanelProduct<float, Float16>&);
  void (*panels_f32)(const PanelProduct<float, float>&);
  UnpackTiles unpack_tiles[kTileReadings];
  /// For readings that unpack to BF16. Null where unpacking blocks and calling panels_bf16 is all there is to
  /// do.
  void (*tile_product)(const TileProduct&);
  void (*add_scaled)(const ScaledGroup&);
  /// Null where unpacking, calling panels_bf16 and add_scaled() group by group is all there is to do.
  void (*scaled_product)(const ScaledProduct&);
  /// c = activations · weights in integers per group of activations, scaled late: c += float(dot) · scale_w ·
  /// scale_a, the groups in order; for MXFP4 see generic/shared_exponents.h. The same bits on every
  /// instruction set.
  void (*integer_product[kIntegerKinds])(const Int8Rows& a, const IntegerPanels& weights, float* c,
                                         int64_t c_stride);
  void (*squeeze3)(const SqueezeProduct&);
  void (*squeeze4)(const SqueezeProduct&);

  // Element-wise operations on one row of n floats, n a multiple of 16.
  void (*to_bf16)(const float* x, int64_t n, BFloat16* out);
  /// Groups of 32 (n a multiple of 32) to int8, as Int8Rows holds them.
  void (*quantize_int8)(const float* x, int64_t n, int8_t* codes, float* scales, int32_t* sums);
  /// Groups of 128, the last may be shorter, to whole numbers from -127 to 127, which lie as those of
  /// quantize_int8() do and have the scale of their group in each 32: that of its largest magnitude.
  void (*quantize_wide)(const float* x, int64_t n, int8_t* codes, float* scales, int32_t* sums);
  /// Likewise to whole numbers from -7 to 7, with the scale of nine tenths of the group's largest magnitude:
  /// what is larger is cut (Atom, QuaRot).
  void (*quantize_int4)(const float* x, int64_t n, int8_t* codes, float* scales, int32_t* sums);
  /// out = x / sqrt(Σ x² / length + epsilon) · weight; x is zero from `length` to n.
  void (*rms_norm)(const float* x, const float* weight, int64_t n, int64_t length, float epsilon, float* out);
  /// out = gate / (1 + e^-gate) · up
  void (*silu_gate)(const float* gate, const float* up, int64_t n, float* out);
  /// x += y
  void (*add)(float* x, const float* y, int64_t n);
  /// x *= factor
  void (*scale)(float* x, int64_t n, float factor);
  /// Rotates the pairs (x[i], x[half + i]) by the angles whose cosine and sine are given; any `half`.
  void (*rotate)(float* x, const float* cosine, const float* sine, int64_t half);
  /// Takes a chunk of n scores (a multiple of 32) into a running softmax: scores outside visible_begin ..
  /// visible_end - 1 become minus infinity, the others count times `scale`, which is positive. Writes
  /// probabilities relative to the new maximum in BF16 (their rounded values are what is summed), and returns
  /// the factor by which what was gathered before must shrink.
  float (*softmax_chunk)(float* scores, int64_t n, int64_t visible_begin, int64_t visible_end, float scale,
                         SoftmaxState* state, BFloat16* probabilities);

  void (*code_product[kCodeStorages])(const CodeProduct&);
  /// x · scales, n numbers (a multiple of 64, at most kMostScaledNumbers), as codes for a CodeProduct:
  /// [2][n]. The same on every instruction set, as the next one is.
  ScaledRow (*quantize_scaled_row)(const BFloat16* x, const BFloat16* scales, const BFloat16* zeros,
                                   int64_t n, int8_t* codes);
  /// out = products · step + constant, added to what out holds if `accumulate`; n a multiple of 16.
  void (*dequantize_sums)(const int32_t* products, int64_t n, float step, float constant, bool accumulate,
                          float* out);

  /// The xor of all 64-bit words, the last one filled up with zeros. Benchmarks measure with it how quickly
  /// memory can be read, which is what the products are compared with.
  uint64_t (*read_all)(const std::byte* data, int64_t bytes);
  /// The multiplications and additions of panels_bf16 on registers alone, `steps` times: the other thing that
  /// products are compared with. Returns how many there were, and in out[16] what becomes of them.
  int64_t (*multiply_registers)(int64_t steps, float* out);
};

}  // namespace verbatim
