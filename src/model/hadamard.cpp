#include "model/hadamard.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace verbatim {

namespace {

/// The largest order of a matrix by Paley's construction; larger ones would cost as much as a small product.
constexpr int64_t kLargestPaley = 512;

bool is_prime(int64_t n) {
  if (n < 2) return false;
  for (int64_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return true;
}

/// The Jacobsthal matrix of a prime: 1 where the difference of row and column is a square modulo the prime,
/// -1 where it is not, 0 on the diagonal.
std::vector<int> jacobsthal(int64_t prime) {
  std::vector<int> character(static_cast<size_t>(prime), -1);
  for (int64_t i = 1; i < prime; ++i) character[static_cast<size_t>(i * i % prime)] = 1;
  character[0] = 0;
  std::vector<int> matrix(static_cast<size_t>(prime * prime));
  for (int64_t r = 0; r < prime; ++r) {
    for (int64_t c = 0; c < prime; ++c) {
      matrix[static_cast<size_t>(r * prime + c)] = character[static_cast<size_t>((r - c + prime) % prime)];
    }
  }
  return matrix;
}

/// The Jacobsthal matrix with a row of ones above it and a column of `left` to its left.
std::vector<int> bordered(int64_t prime, int left) {
  const int64_t order = prime + 1;
  const std::vector<int> inner = jacobsthal(prime);
  std::vector<int> matrix(static_cast<size_t>(order * order));
  for (int64_t i = 1; i < order; ++i) {
    matrix[static_cast<size_t>(i)] = 1;
    matrix[static_cast<size_t>(i * order)] = left;
    for (int64_t j = 1; j < order; ++j) {
      matrix[static_cast<size_t>(i * order + j)] = inner[static_cast<size_t>((i - 1) * prime + j - 1)];
    }
  }
  return matrix;
}

/// A Hadamard matrix by Paley's first construction (the order less one is a prime that leaves 3 divided by
/// 4) or his second (half the order less one is a prime that leaves 1); empty where neither applies.
std::vector<float> paley(int64_t order) {
  const auto size = static_cast<size_t>(order * order);
  if (order % 4 == 0 && (order - 1) % 4 == 3 && is_prime(order - 1)) {
    const std::vector<int> core = bordered(order - 1, -1);
    std::vector<float> matrix(size);
    for (int64_t i = 0; i < order; ++i) {
      for (int64_t j = 0; j < order; ++j) {
        const auto at = static_cast<size_t>(i * order + j);
        matrix[at] = static_cast<float>(core[at] + (i == j ? 1 : 0));
      }
    }
    return matrix;
  }
  if (order % 4 == 0 && (order / 2 - 1) % 4 == 1 && is_prime(order / 2 - 1)) {
    // Every entry of the bordered matrix becomes a block of two by two; zeros become another block than 1 and
    // -1.
    const int64_t half = order / 2;
    const std::vector<int> core = bordered(half - 1, 1);
    constexpr std::array<std::array<int, 4>, 2> kBlocks = {{{1, -1, -1, -1}, {1, 1, 1, -1}}};
    std::vector<float> matrix(size);
    for (int64_t i = 0; i < order; ++i) {
      for (int64_t j = 0; j < order; ++j) {
        const int entry = core[static_cast<size_t>(i / 2 * half + j / 2)];
        const int sign = entry == 0 ? 1 : entry;
        const int block = kBlocks[entry == 0 ? 0 : 1][static_cast<size_t>(i % 2 * 2 + j % 2)];
        matrix[static_cast<size_t>(i * order + j)] = static_cast<float>(sign * block);
      }
    }
    return matrix;
  }
  return {};
}

}  // namespace

Hadamard::Hadamard(int64_t order) : order_(order) {
  int64_t odd = order;
  while (odd % 2 == 0) odd /= 2;
  const int64_t power = order / odd;
  sylvester_order_ = power;
  if (odd > 1) {
    for (int64_t factor = 4; factor <= power && odd * factor <= kLargestPaley; factor *= 2) {
      paley_ = paley(odd * factor);
      if (paley_.empty()) continue;
      paley_order_ = odd * factor;
      sylvester_order_ = power / factor;
      break;
    }
  }
  scale_ = 1.0f / std::sqrt(static_cast<float>(block()));
}

void Hadamard::forward(float* x, int64_t width) const {
  const int64_t inner = sylvester_order_ * width;
  for (int64_t begin = 0; begin < order_ * width; begin += inner) mix_blocks(x + begin, width);
  if (!paley_.empty()) mix_across(x, inner);
  for (int64_t i = 0; i < order_ * width; ++i) x[i] *= scale_;
}

/// Multiplies by Sylvester's matrix, which is its own transpose, in log2(order) rounds of sums and
/// differences.
void Hadamard::mix_blocks(float* x, int64_t width) const {
  const int64_t end = sylvester_order_ * width;
  for (int64_t apart = width; apart < end; apart *= 2) {
    for (int64_t begin = 0; begin < end; begin += 2 * apart) {
      float* const first = x + begin;
      float* const second = first + apart;
      for (int64_t i = 0; i < apart; ++i) {
        const float a = first[i];
        const float b = second[i];
        first[i] = a + b;
        second[i] = a - b;
      }
    }
  }
}

/// Multiplies by Paley's matrix across rows of `width` numbers, a strip of columns at a time.
void Hadamard::mix_across(float* x, int64_t width) const {
  constexpr int64_t kStrip = 64;
  std::array<float, kLargestPaley * kStrip> strip;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  for (int64_t begin = 0; begin < width; begin += kStrip) {
    const int64_t count = std::min(kStrip, width - begin);
    for (int64_t i = 0; i < paley_order_; ++i) {
      std::copy_n(x + i * width + begin, count, strip.data() + i * kStrip);
    }
    for (int64_t out = 0; out < paley_order_; ++out) {
      std::array<float, kStrip> sums{};
      for (int64_t in = 0; in < paley_order_; ++in) {
        const float sign = paley_[static_cast<size_t>(in * paley_order_ + out)];
        const float* const row = strip.data() + in * kStrip;
        for (int64_t i = 0; i < count; ++i) sums[static_cast<size_t>(i)] += sign * row[i];
      }
      std::copy_n(sums.data(), count, x + out * width + begin);
    }
  }
}

}  // namespace verbatim
