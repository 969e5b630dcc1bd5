#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "accelerator/function/float_units.h"
#include "accelerator/function/stored_weight.h"

// Comparisons of modules in RTL, as Verilator makes classes of them, with the model in C++. Each returns how
// many results differ, so that a module with a planted bug can be told from the right one.

namespace verbatim::test {

/// What one PE's decoder makes of all that can be stored: 65,536 full weights, and as many triples of drafts.
template <typename Module>
int64_t decoder_differences() {
  using namespace accelerator;
  Module module;
  int64_t differences = 0;
  for (uint32_t stored = 0; stored < 65536; ++stored) {
    module.stored = static_cast<uint16_t>(stored);
    module.draft = 0;
    module.eval();
    const StoredWeight one{.q = static_cast<uint8_t>(stored >> 12),
                           .r = static_cast<uint16_t>(stored & 0xfff)};
    differences += module.weight != full_weight(one) ? 1 : 0;
    module.draft = 1;
    module.eval();
    for (uint32_t lane = 0; lane < 3; ++lane) {
      const StoredWeight draft{.q = static_cast<uint8_t>(stored >> 4 * lane & 15), .r = 0};
      differences += (module.weight >> 5 * lane & 31) != draft_weight(draft) ? 1 : 0;
    }
  }
  return differences;
}

/// What the decoder gives back of all 65,536 FP16 numbers, as far as they can be stored: the number itself,
/// and the draft exponent that figure 3 of SPEQ has for its exponent.
template <typename Module>
int64_t stored_weight_differences() {
  using namespace accelerator;
  constexpr int kDrafts[16] = {2, 2, 2, 2, 6, 6, 6, 6, 8, 9, 10, 11, 12, 12, 14, 14};
  Module module;
  int64_t differences = 0;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto stored = encode(static_cast<uint16_t>(bits));
    const uint32_t exponent = bits >> 10 & 31;
    if (stored.has_value() != (exponent < 16)) ++differences;
    if (!stored) continue;
    module.stored = static_cast<uint16_t>(stored->q << 12 | stored->r);
    module.draft = 0;
    module.eval();
    differences += as_fp16(module.weight) != bits ? 1 : 0;
    module.stored = stored->q;
    module.draft = 1;
    module.eval();
    differences +=
        (module.weight & 31) != (bits >> 15 << 4 | static_cast<uint32_t>(kDrafts[exponent])) ? 1 : 0;
  }
  return differences;
}

/// Numbers of all kinds: any, subnormal, near each other, about the largest, infinite, zero, NaN.
inline uint32_t any_number(std::mt19937_64& random) {
  const auto bits = static_cast<uint32_t>(random());
  switch (random() % 6) {
    case 0:
      return bits;
    case 1:
      return bits & 0x807fffff;
    case 2:
      return (bits & 0x80000007) | 0x3f800000;
    case 3:
      return (bits & 0x8000ffff) | 0x7f7f0000;
    case 4:
      return (bits & 0x80000000) | (random() % 2 == 0 ? 0x7f800000 : 0);
    default:
      return (bits & 0x81ffffff) | 0x3e000000;
  }
}

/// The results of a module with inputs a and b for so many random pairs, a sixteenth of them opposite
/// numbers.
template <typename Module, typename Expected, typename Result>
int64_t float_differences(int64_t pairs, Expected&& expected, Result&& result) {
  std::mt19937_64 random(6);
  Module module;
  int64_t differences = 0;
  for (int64_t i = 0; i < pairs; ++i) {
    const uint32_t a = any_number(random);
    const uint32_t b = i % 16 == 0 ? a ^ 0x80000000 : any_number(random);
    module.a = a;
    module.b = b;
    module.eval();
    differences += result(module) != expected(a, b) ? 1 : 0;
  }
  return differences;
}

/// A PE whose products and sums are asked for one after the other.
template <typename Module>
class PeDriver {
 public:
  using Lanes = std::array<uint32_t, 3>;

  /// Three weights S1E4, or one S1E4M10, times an activation.
  Lanes multiply(bool draft, uint16_t activation, uint16_t weight, bool masked = false) {
    module_.draft = draft;
    module_.masked = masked;
    module_.activation = activation;
    module_.weight = weight;
    tick();
    return {module_.products[0], module_.products[1], module_.products[2]};
  }

  /// Adds the last products to the last sums, or to zeros; a product of the present inputs is made as well.
  Lanes accumulate(bool from_zero) {
    for (int lane = 0; lane < 3; ++lane) {
      module_.left[lane] = module_.products[lane];
      module_.right[lane] = from_zero ? 0 : module_.sums[lane];
    }
    tick();
    return {module_.sums[0], module_.sums[1], module_.sums[2]};
  }

 private:
  void tick() {
    module_.clock = 0;
    module_.eval();
    module_.clock = 1;
    module_.eval();
  }
  Module module_;
};

/// Quantize mode: every activation from `step` to `step` times every code, in every lane.
template <typename Module>
int64_t draft_product_differences(int step) {
  using namespace accelerator;
  PeDriver<Module> pe;
  std::array<uint8_t, 16> weights{};
  for (uint8_t q = 0; q < 16; ++q) weights[q] = draft_weight({.q = q, .r = 0});
  int64_t differences = 0;
  for (int activation = 0; activation < 65536; activation += step) {
    const auto bits = static_cast<uint16_t>(activation);
    std::array<uint32_t, 16> expected{};
    for (size_t q = 0; q < 16; ++q) expected[q] = draft_product(bits, weights[q]);
    for (size_t q = 0; q < 16; ++q) {
      // Each lane sees every code, and no two the same at once.
      const std::array<size_t, 3> codes = {q, (q + 5) % 16, (q + 11) % 16};
      const auto weight =
          static_cast<uint16_t>(weights[codes[0]] | weights[codes[1]] << 5 | weights[codes[2]] << 10);
      const auto products = pe.multiply(true, bits, weight);
      for (size_t lane = 0; lane < 3; ++lane) differences += products[lane] != expected[codes[lane]] ? 1 : 0;
    }
  }
  return differences;
}

/// Full mode: random activations and weights; the other lanes and masked PEs give zeros.
template <typename Module>
int64_t full_product_differences(int64_t pairs) {
  using namespace accelerator;
  std::mt19937_64 random(12);
  PeDriver<Module> pe;
  int64_t differences = 0;
  for (int64_t i = 0; i < pairs; ++i) {
    const uint64_t bits = random();
    const auto activation = static_cast<uint16_t>(bits);
    const auto weight = static_cast<uint16_t>(bits >> 16 & 0x7fff);
    const bool masked = (bits >> 32 & 63) == 0;
    const auto products = pe.multiply(false, activation, weight, masked);
    const uint32_t expected = masked ? 0 : full_product(activation, weight);
    differences += products[0] != expected || products[1] != 0 || products[2] != 0 ? 1 : 0;
  }
  return differences;
}

/// Both modes: sums of so many rows of 20 products, as a PE by itself accumulates them.
template <typename Module>
int64_t accumulated_differences(int64_t rows) {
  using namespace accelerator;
  std::mt19937_64 random(13);
  PeDriver<Module> pe;
  int64_t differences = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const bool draft = row % 2 == 0;
    std::array<uint32_t, 3> expected{};
    for (int i = 0; i < 20; ++i) {
      const uint64_t bits = random();
      const auto activation =
          static_cast<uint16_t>(bits % 8 == 0 ? bits >> 48 : (bits >> 48 & 0x83ff) | 0x3800);
      const auto weight = static_cast<uint16_t>(bits >> 16 & 0x7fff);
      pe.multiply(draft, activation, weight);
      const auto sums = pe.accumulate(i == 0);
      for (size_t lane = 0; lane < 3; ++lane) {
        uint32_t product = 0;
        if (draft) product = draft_product(activation, static_cast<uint8_t>(weight >> 5 * lane & 31));
        if (!draft && lane == 0) product = full_product(activation, weight);
        expected[lane] = add_fp32(product, expected[lane]);
        differences += sums[lane] != expected[lane] ? 1 : 0;
      }
    }
  }
  return differences;
}

}  // namespace verbatim::test
