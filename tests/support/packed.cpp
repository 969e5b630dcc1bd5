#include "support/packed.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "support/random.h"

namespace verbatim::test {

MatrixRows rows_of(std::span<const float> weights, int64_t k) {
  return [weights, k](int64_t column, std::span<float> row) {
    std::copy_n(weights.begin() + column * k, k, row.begin());
  };
}

LinearWeight pack(int64_t columns, int64_t k, std::span<const float> weights, std::vector<Format> formats,
                  Element element) {
  ThreadTeam team(2);
  PackLinearOptions options;
  options.formats = std::move(formats);
  options.element = element;
  return std::move(pack_linear(columns, k, rows_of(weights, k), options, team).weight);
}

PackedMatrix pack_store(int64_t columns, int64_t k, std::span<const float> weights, Format format,
                        Element element) {
  LinearWeight weight = pack(columns, k, weights, {format}, element);
  return std::move(weight.stores.front());
}

std::vector<float> unpacked_column(const PackedMatrix& matrix, Reading reading, int64_t column) {
  std::vector<float> weights(static_cast<size_t>(matrix.k), NAN);
  operations(matrix.format).unpack_column(matrix, reading, column, weights);
  return weights;
}

PackedMatrix copy_of(const PackedMatrix& matrix) {
  PackedMatrix copy;
  copy.format = matrix.format;
  copy.element = matrix.element;
  copy.columns = matrix.columns;
  copy.k = matrix.k;
  for (const Plane& plane : matrix.planes) {
    copy.planes.emplace_back(plane.size());
    std::copy(plane.bytes().begin(), plane.bytes().end(), copy.planes.back().as<std::byte>());
  }
  return copy;
}

bool same_bytes(const PackedMatrix& a, const PackedMatrix& b) {
  return std::equal(a.planes.begin(), a.planes.end(), b.planes.begin(), b.planes.end(),
                    [](const Plane& x, const Plane& y) { return std::ranges::equal(x.bytes(), y.bytes()); });
}

std::vector<float> multiply(const LinearWeight& weight, Reading reading, const float* x, int64_t rows,
                            ThreadTeam& team, LinearWorkspace& workspace) {
  std::vector<float> y(static_cast<size_t>(rows * weight.padded_columns()), NAN);
  linear(weight, reading, {x, rows, weight.padded_k()}, {y.data(), rows, weight.padded_columns()}, workspace,
         team);
  return y;
}

std::vector<float> random_inputs(int64_t rows, int64_t k, uint32_t seed) {
  const int64_t padded = round_up(k, kInnerStep);
  std::vector<float> x = random_floats(static_cast<size_t>(rows * padded), seed);
  for (int64_t r = 0; r < rows; ++r) {
    std::fill(x.begin() + r * padded + k, x.begin() + (r + 1) * padded, 0.0f);
  }
  return x;
}

}  // namespace verbatim::test
