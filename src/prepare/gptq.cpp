#include "prepare/gptq.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "formats/importance.h"

namespace verbatim {

namespace {

constexpr double kDamping = 0.01;  // of the mean of the diagonal
/// Rows of a sum, or of an inverse, that are worked on side by side, so that what all of them read is read
/// once, and columns that are rounded side by side.
constexpr int64_t kRowsTogether = 8;
constexpr int64_t kColumnsTogether = 16;

/// Calls work(i) for 0 .. count - 1, with long and short ones in pairs: i takes the longer, the larger it is.
template <typename Work>
void split_in_pairs(int64_t count, ThreadTeam& team, Work&& work) {
  team.split((count + 1) / 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      work(i);
      if (count - 1 - i != i) work(count - 1 - i);
    }
  });
}

/// The sum with its inputs in order, the damping added.
SquareMatrix damped(const SquareMatrix& hessian, std::span<const int32_t> order, double added) {
  SquareMatrix result(hessian.n);
  for (int64_t i = 0; i < hessian.n; ++i) {
    for (int64_t j = i; j < hessian.n; ++j) {
      const auto [low, high] = std::minmax(order[static_cast<size_t>(i)], order[static_cast<size_t>(j)]);
      result.row(i)[j] = hessian.row(low)[high] + (i == j ? added : 0.0);
    }
  }
  return result;
}

/// Replaces a symmetric matrix by the upper triangular R with R·Rᵀ equal to it. `least` is the least square
/// of an element of the diagonal.
void decompose(SquareMatrix& matrix, double least, ThreadTeam& team) {
  std::vector<double> column(static_cast<size_t>(matrix.n));
  for (int64_t j = matrix.n - 1; j >= 0; --j) {
    const double diagonal = std::sqrt(std::max(matrix.row(j)[j], least));
    matrix.row(j)[j] = diagonal;
    for (int64_t i = 0; i < j; ++i) {
      matrix.row(i)[j] /= diagonal;
      column[static_cast<size_t>(i)] = matrix.row(i)[j];
    }
    split_in_pairs(j, team, [&](int64_t i) {
      double* const row = matrix.row(i);
      const double factor = column[static_cast<size_t>(i)];
      for (int64_t m = i; m < j; ++m) row[m] -= factor * column[static_cast<size_t>(m)];
    });
  }
}

/// The inverse of an upper triangular matrix R: its row i is the u with u·R = eᵢ.
SquareMatrix inverse_of(const SquareMatrix& factor, ThreadTeam& team) {
  const int64_t n = factor.n;
  SquareMatrix inverse(n);
  split_in_pairs(ceil_div(n, kRowsTogether), team, [&](int64_t block) {
    const int64_t first = block * kRowsTogether;
    const int64_t end = std::min(n, first + kRowsTogether);
    for (int64_t i = first; i < end; ++i) inverse.row(i)[i] = 1.0;
    for (int64_t m = first; m < n; ++m) {
      const double* const row = factor.row(m);
      for (int64_t i = first; i < std::min(end, m + 1); ++i) {
        double* const u = inverse.row(i);
        u[m] /= row[m];
        const double scale = u[m];
        for (int64_t j = m + 1; j < n; ++j) u[j] -= scale * row[j];
      }
    }
  });
  return inverse;
}

}  // namespace

void add_outer_products(SquareMatrix& sum, Matrix<const float> x, ThreadTeam& team) {
  const int64_t n = sum.n;
  split_in_pairs(ceil_div(n, kRowsTogether), team, [&](int64_t block) {
    const int64_t first = block * kRowsTogether;
    const int64_t end = std::min(n, first + kRowsTogether);
    for (int64_t r = 0; r < x.rows; ++r) {
      const float* const from = x.row(r);
      for (int64_t i = first; i < end; ++i) {
        double* const to = sum.row(i);
        const double factor = from[i];
        for (int64_t j = i; j < n; ++j) to[j] += factor * static_cast<double>(from[j]);
      }
    }
  });
}

std::vector<int32_t> activation_order(const SquareMatrix& hessian) {
  std::vector<int32_t> order(static_cast<size_t>(hessian.n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return hessian.row(a)[a] > hessian.row(b)[b]; });
  return order;
}

SquareMatrix inverse_factor(const SquareMatrix& hessian, std::span<const int32_t> order, ThreadTeam& team) {
  double mean = 0.0;
  for (int64_t i = 0; i < hessian.n; ++i) mean += hessian.row(i)[i] / static_cast<double>(hessian.n);
  const double added = mean > 0.0 ? kDamping * mean : 1.0;
  SquareMatrix factor = damped(hessian, order, added);
  decompose(factor, added * 1e-6, team);
  return inverse_of(factor, team);
}

RoundedMatrix round_by_gptq(const DenseMatrix& weights, const SquareMatrix& hessian, int bits,
                            ThreadTeam& team) {
  const std::vector<int32_t> order = activation_order(hessian);
  const SquareMatrix inverse = inverse_factor(hessian, order, team);
  RoundedMatrix rounded = choose_scales(weights, bits, team);
  const int64_t k = weights.k;
  // For every thread the weights of some columns, in order, less what made up for errors.
  const auto share = static_cast<size_t>(k * kColumnsTogether);
  std::vector<double> all_left(share * static_cast<size_t>(team.size()));
  team.split(ceil_div(weights.columns, kColumnsTogether), 1, [&](int member, int64_t begin, int64_t end) {
    const std::span<double> left = std::span(all_left).subspan(share * static_cast<size_t>(member), share);
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kColumnsTogether;
      const int64_t count = std::min(kColumnsTogether, weights.columns - first);
      for (int64_t i = 0; i < k; ++i) {
        for (int64_t c = 0; c < count; ++c) {
          const int64_t at = (first + c) * k + order[static_cast<size_t>(i)];
          left[static_cast<size_t>(i * kColumnsTogether + c)] =
              finite_or_zero(weights.values[static_cast<size_t>(at)]);
        }
      }
      for (int64_t i = 0; i < k; ++i) {
        const double* const row = inverse.row(i);
        const int64_t input = order[static_cast<size_t>(i)];
        double errors[kColumnsTogether] = {};
        for (int64_t c = 0; c < count; ++c) {
          const double weight = left[static_cast<size_t>(i * kColumnsTogether + c)];
          const float scale = to_float(rounded.scale(first + c, input));
          const int8_t code = nearest_code(weight, scale, bits);
          rounded.codes[static_cast<size_t>((first + c) * k + input)] = code;
          errors[c] = (weight - static_cast<double>(code) * double{scale}) / row[i];
        }
        for (int64_t j = i + 1; j < k; ++j) {
          double* const to = left.data() + j * kColumnsTogether;
          for (int64_t c = 0; c < kColumnsTogether; ++c) to[c] -= errors[c] * row[j];
        }
      }
    }
  });
  return rounded;
}

}  // namespace verbatim
