#pragma once

#include <cstdint>

#include "base/float16.h"

namespace verbatim {

// The kernels that differ between instruction sets. Everything around them (linear.h, attention.h, the model)
// is written once and calls them through a KernelTable. This header and all that the instruction-set folders
// include keep to plain structs and always-inlined functions: see the note in base/float16.h.

/// Output columns per weight panel.
inline constexpr int64_t kPanelWidth = 16;
/// Inner dimensions are padded with zeros to a multiple of this; also the group size of MXFP4.
inline constexpr int64_t kInnerStep = 32;

/// c[r][16 p + i] = Σ_k a[r][k] · panel_p[k][i], added to what c holds if `accumulate`.
/// Each output is summed over k in an order that depends on k alone: the row-independence rule (design:
/// promise 1).
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
};

/// Rows of activations in int8 with one scale per group of 32, as the w4a8 product wants them.
struct Int8Rows {
  const int8_t* codes;  ///< [rows][k]
  const float*
      scales;  ///< [rows][k / 32]; half the quantization step, because the weight table holds doubled values
  const int32_t* sums;  ///< [rows][k / 32]; the sum of the group's codes
  int64_t rows;
  int64_t k;  ///< a multiple of kInnerStep
};

/// MXFP4 panels: per panel and group of 32 there are 256 bytes of codes and 16 scales (formats/mxfp4.h).
struct Mxfp4Panels {
  const uint8_t* codes;
  const uint8_t* scales;
  int64_t panel_count;
};

/// The softmax state of one query row over the chunks of its context seen so far.
struct SoftmaxState {
  float maximum;
  float sum;
};

struct KernelTable {
  const char* name;  ///< for people: "avx512 (vnni, bf16)"

  void (*panels_bf16)(const PanelProduct<BFloat16, BFloat16>&);
  void (*panels_f16)(const PanelProduct<float, Float16>&);
  void (*panels_f32)(const PanelProduct<float, float>&);
  /// c = activations · weights in integers per group of 32, scaled late: c += float(dot) · (scale_a ·
  /// scale_w), the groups in order (ML-SpecQD §III-D3, Fig. 4). The same bits on every instruction set.
  void (*panels_mxfp4_w4a8)(const Int8Rows& a, const Mxfp4Panels& weights, float* c, int64_t c_stride);
  /// One panel's groups first .. first + count - 1 as BF16, exactly, in the layout of a bf16 panel.
  void (*unpack_mxfp4)(const uint8_t* codes, const uint8_t* scales, int64_t group_count, BFloat16* out);

  // Element-wise operations on one row of n floats, n a multiple of 16.
  void (*to_bf16)(const float* x, int64_t n, BFloat16* out);
  /// Groups of 32 (n a multiple of 32) to int8, as Int8Rows holds them.
  void (*quantize_int8)(const float* x, int64_t n, int8_t* codes, float* scales, int32_t* sums);
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
  /// visible_end - 1 count as minus infinity, the others are multiplied by `scale`. Writes probabilities
  /// relative to the new maximum in BF16 (their rounded values are what is summed), and returns the factor by
  /// which what was gathered before must shrink.
  float (*softmax_chunk)(float* scores, int64_t n, int64_t visible_begin, int64_t visible_end, float scale,
                         SoftmaxState* state, BFloat16* probabilities);
};

}  // namespace verbatim
