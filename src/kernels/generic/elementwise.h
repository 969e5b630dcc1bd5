#pragma once

#include "kernels/kernel_table.h"

namespace verbatim::generic {

// Element-wise kernels over V, the type of sixteen floats of an instruction set. A reduction has sixteen
// running values, which are combined by one fixed tree, so its order depends on the length of the row alone.

/// Computes e^x within a few units in the last place, for x up to 88. Results below the smallest normal
/// number are 0.
template <typename V>
VERBATIM_INLINE V exponential(V x) {
  const V lowest = V::set(-87.0f);
  const V clamped = max(x, lowest);
  // The sum's last bit is worth one, so that adding rounds to whole numbers.
  const V magic = V::set(12582912.0f);  // 1.5 · 2^23
  const V shifted = fma(clamped, V::set(1.44269504088896341f), magic);
  const V n = shifted - magic;
  // ln 2 in two parts, the first exact in few bits, keeps the remainder accurate.
  V r = fma(n, V::set(-0.693359375f), clamped);
  r = fma(n, V::set(2.12194440e-4f), r);
  V polynomial = V::set(1.9875691500e-4f);
  polynomial = fma(polynomial, r, V::set(1.3981999507e-3f));
  polynomial = fma(polynomial, r, V::set(8.3334519073e-3f));
  polynomial = fma(polynomial, r, V::set(4.1665795894e-2f));
  polynomial = fma(polynomial, r, V::set(1.6666665459e-1f));
  polynomial = fma(polynomial, r, V::set(5.0000001201e-1f));
  const V result = fma(polynomial * r, r, r + V::set(1.0f));
  return zero_where_below(scale_by_power(result, shifted), x, lowest);
}

template <typename V>
void to_bf16(const float* x, int64_t n, BFloat16* out) {
  for (int64_t i = 0; i < n; i += 16) V::load(x + i).store(out + i);
}

/// Quantizes groups of 32 with powers of two as scales (OCP MX's MXINT8). A scale is kept within 2^-59 ..
/// 2^93, so that no product with weights is subnormal and no sum over a group is infinite. Larger activations
/// become 127 · 2^93.
template <typename V>
void quantize_int8(const float* x, int64_t n, int8_t* codes, float* scales, int32_t* sums) {
  const V lowest = V::set(-127.0f);
  const V limit = V::set(127.0f);
  for (int64_t g = 0; g < n / 32; ++g) {
    const V a = V::load(x + g * 32);
    const V b = V::load(x + g * 32 + 16);
    const uint32_t exponent = __builtin_bit_cast(uint32_t, reduce_max(max(absolute(a), absolute(b)))) >> 23;
    const uint32_t scale = (exponent < 74 ? 74 : exponent > 226 ? 226 : exponent) - 6;
    const V inverse = V::set(__builtin_bit_cast(float, (254 - scale) << 23));
    const V first = min(max(round(a * inverse), lowest), limit);
    const V second = min(max(round(b * inverse), lowest), limit);
    first.store_int8_quads(codes + g * 32);
    second.store_int8_quads(codes + g * 32 + 16);
    scales[g] = __builtin_bit_cast(float, (scale - 1) << 23);
    sums[g] = static_cast<int32_t>(reduce_add(first + second));  // integers below 2^24: exact
  }
}

/// Quantizes groups of 128 to integers from -kLimit to kLimit. The scale makes the share `kept` of the
/// largest magnitude become kLimit.
template <typename V, int kLimit>
VERBATIM_INLINE void quantize_groups(const float* x, int64_t n, float kept, int8_t* codes, float* scales,
                                     int32_t* sums) {
  constexpr int64_t kGroup = 128;
  constexpr auto kLargestCode = static_cast<float>(kLimit);
  constexpr float kLeast = 7.8886090522101181e-31f;   // 2^-100; smaller ones count as zero
  constexpr float kLargest = 9.9035203142830422e27f;  // 2^93
  for (int64_t begin = 0; begin < n; begin += kGroup) {
    const int64_t end = begin + kGroup < n ? begin + kGroup : n;
    V largest = V::set(0.0f);
    for (int64_t i = begin; i < end; i += 16) largest = max(largest, absolute(V::load(x + i)));
    float extreme = reduce_max(largest);
    if (!(extreme < kLargest)) extreme = kLargest;  // NaN as well
    const float step = extreme < kLeast ? 0.0f : extreme * (kept / kLargestCode);
    const V inverse = V::set(step == 0.0f ? 0.0f : 1.0f / step);
    const V lowest = V::set(-kLargestCode);
    const V limit = V::set(kLargestCode);
    for (int64_t i = begin; i < end; i += 32) {
      const V first = min(max(round(V::load(x + i) * inverse), lowest), limit);
      const V second = min(max(round(V::load(x + i + 16) * inverse), lowest), limit);
      first.store_int8_quads(codes + i);
      second.store_int8_quads(codes + i + 16);
      scales[i / 32] = 0.5f * step;
      sums[i / 32] = static_cast<int32_t>(reduce_add(first + second));
    }
  }
}

template <typename V>
void quantize_int4(const float* x, int64_t n, int8_t* codes, float* scales, int32_t* sums) {
  quantize_groups<V, 7>(x, n, 0.9f, codes, scales, sums);
}

template <typename V>
void quantize_wide(const float* x, int64_t n, int8_t* codes, float* scales, int32_t* sums) {
  quantize_groups<V, 127>(x, n, 1.0f, codes, scales, sums);
}

template <typename V>
void rms_norm(const float* x, const float* weight, int64_t n, int64_t length, float epsilon, float* out) {
  V squares = V::set(0.0f);
  for (int64_t i = 0; i < n; i += 16) {
    const V value = V::load(x + i);
    squares = fma(value, value, squares);
  }
  const float mean = reduce_add(squares) / static_cast<float>(length);
  const V factor = V::set(1.0f / __builtin_sqrtf(mean + epsilon));
  for (int64_t i = 0; i < n; i += 16) (V::load(x + i) * factor * V::load(weight + i)).store(out + i);
}

/// The distances of numbers i .. i + 15 from the mean, with zero for those from `length` on, which do not
/// count.
template <typename V>
VERBATIM_INLINE V centred(const float* x, int64_t i, int64_t length, V mean) {
  static constexpr float kLanes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const V distance = V::load(x + i) - mean;
  if (i + 16 <= length) return distance;
  const V left = V::set(static_cast<float>(length - i)) - V::load(kLanes);  // below 1 from `length` on
  return zero_where_below(distance, left, V::set(1.0f));
}

/// The mean is taken away before squares are summed, as their difference would lose digits.
template <typename V>
void layer_norm(const float* x, const float* weight, const float* bias, int64_t n, int64_t length,
                float epsilon, float* out) {
  V sum = V::set(0.0f);
  for (int64_t i = 0; i < n; i += 16) sum = sum + V::load(x + i);
  const V mean = V::set(reduce_add(sum) / static_cast<float>(length));
  V squares = V::set(0.0f);
  for (int64_t i = 0; i < n; i += 16) {
    const V value = centred<V>(x, i, length, mean);
    squares = fma(value, value, squares);
  }
  const float variance = reduce_add(squares) / static_cast<float>(length);
  const V factor = V::set(1.0f / __builtin_sqrtf(variance + epsilon));
  for (int64_t i = 0; i < n; i += 16) {
    const V value = centred<V>(x, i, length, mean) * factor;
    fma(value, V::load(weight + i), V::load(bias + i)).store(out + i);
  }
}

template <typename V>
void silu_gate(const float* gate, const float* up, int64_t n, float* out) {
  const V one = V::set(1.0f);
  for (int64_t i = 0; i < n; i += 16) {
    const V g = V::load(gate + i);
    (g / (one + exponential(min(V::set(0.0f) - g, V::set(88.0f)))) * V::load(up + i)).store(out + i);
  }
}

template <typename V>
VERBATIM_INLINE V gelu_of(V x) {
  const V cubic = fma(x * x * x, V::set(0.044715f), x);
  const V exponent = min(cubic * V::set(-1.5957691216057308f), V::set(88.0f));  // -2 √(2/π)
  return x / (V::set(1.0f) + exponential(exponent));
}

template <typename V>
void gelu_gate(const float* gate, const float* up, int64_t n, float* out) {
  for (int64_t i = 0; i < n; i += 16) (gelu_of(V::load(gate + i)) * V::load(up + i)).store(out + i);
}

template <typename V>
void gelu(const float* x, int64_t n, float* out) {
  for (int64_t i = 0; i < n; i += 16) gelu_of(V::load(x + i)).store(out + i);
}

/// tanh(t) = 1 - 2 / (1 + e^2t). What is no finite number becomes NaN, for which min() alone would hide it.
template <typename V>
void soft_cap(float* x, int64_t n, float scale, float cap) {
  const V one = V::set(1.0f);
  const V two = V::set(2.0f);
  const V limit = V::set(88.0f);
  const V factor = V::set(2.0f * (scale / cap));
  for (int64_t i = 0; i < n; i += 16) {
    const V value = V::load(x + i);
    const V powers = exponential(min(value * factor, limit));
    fma(value - value, one, (one - two / (one + powers)) * V::set(cap)).store(x + i);
  }
}

template <typename V>
void add(float* x, const float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) (V::load(x + i) + V::load(y + i)).store(x + i);
}

template <typename V>
void scale(float* x, int64_t n, float factor) {
  for (int64_t i = 0; i < n; i += 16) (V::load(x + i) * V::set(factor)).store(x + i);
}

template <typename V>
void rotate(float* x, const float* cosine, const float* sine, int64_t half) {
  int64_t i = 0;
  for (; i + 16 <= half; i += 16) {
    const V first = V::load(x + i);
    const V second = V::load(x + half + i);
    const V c = V::load(cosine + i);
    const V s = V::load(sine + i);
    (first * c - second * s).store(x + i);
    (second * c + first * s).store(x + half + i);
  }
  for (; i < half; ++i) {
    const float first = x[i];
    const float second = x[half + i];
    x[i] = first * cosine[i] - second * sine[i];
    x[half + i] = second * cosine[i] + first * sine[i];
  }
}

/// Rounds to BF16 as every instruction set can.
template <typename V>
struct PlainRounding {
  /// Stores a number that is not subnormal, and returns the stored number.
  VERBATIM_INLINE static V store(V value, BFloat16* to) {
    value.store(to);
    return V::load(to);
  }
};

/// Keeps numbers as they are.
template <typename V>
struct NoRounding {
  VERBATIM_INLINE static V store(V value, float* to) {
    value.store(to);
    return value;
  }
};

template <typename V, typename Rounding, typename Probability>
VERBATIM_INLINE float take_scores(float* scores, int64_t n, int64_t visible_begin, int64_t visible_end,
                                  float scale, SoftmaxState* state, Probability* probabilities) {
  constexpr float kMinusInfinity = -__builtin_inff();
  for (int64_t i = 0; i < visible_begin; ++i) scores[i] = kMinusInfinity;
  for (int64_t i = visible_end; i < n; ++i) scores[i] = kMinusInfinity;
  const V factor = V::set(scale);
  V largest = V::set(kMinusInfinity);
  for (int64_t i = 0; i < n; i += 16) largest = max(largest, V::load(scores + i) * factor);
  const float before = state->maximum;
  const float chunk_maximum = reduce_max(largest);
  const float maximum = before > chunk_maximum ? before : chunk_maximum;
  const V peak = V::set(maximum);
  V total = V::set(0.0f);
  for (int64_t i = 0; i < n; i += 16) {
    // For finite scores the result of exponential() is zero or normal.
    total = total + Rounding::store(exponential(V::load(scores + i) * factor - peak), probabilities + i);
  }
  const float correction = before == maximum ? 1.0f : reduce_first(exponential(V::set(before - maximum)));
  state->sum = state->sum * correction + reduce_add(total);
  state->maximum = maximum;
  return correction;
}

template <typename V, typename Rounding = PlainRounding<V>>
float softmax_chunk(float* scores, int64_t n, int64_t visible_begin, int64_t visible_end, float scale,
                    SoftmaxState* state, BFloat16* probabilities) {
  return take_scores<V, Rounding>(scores, n, visible_begin, visible_end, scale, state, probabilities);
}

template <typename V>
float softmax_chunk_f32(float* scores, int64_t n, int64_t visible_begin, int64_t visible_end, float scale,
                        SoftmaxState* state, float* probabilities) {
  return take_scores<V, NoRounding<V>>(scores, n, visible_begin, visible_end, scale, state, probabilities);
}

}  // namespace verbatim::generic
