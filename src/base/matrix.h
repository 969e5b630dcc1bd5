#pragma once

#include <cstdint>
#include <span>

namespace verbatim {

/// A view of a row-major matrix: `rows` × `columns` elements, consecutive rows `stride` elements apart. Does
/// not own its data.
template <typename T>
struct Matrix {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t stride = 0;

  Matrix() = default;
  Matrix(T* data_, int64_t rows_, int64_t columns_) : Matrix(data_, rows_, columns_, columns_) {}
  Matrix(T* data_, int64_t rows_, int64_t columns_, int64_t stride_)
      : data(data_), rows(rows_), columns(columns_), stride(stride_) {}

  T* row(int64_t r) const { return data + r * stride; }
  std::span<T> row_span(int64_t r) const { return {row(r), static_cast<size_t>(columns)}; }
  /// A view of rows first .. first + count - 1.
  Matrix slice(int64_t first, int64_t count) const { return {row(first), count, columns, stride}; }
  operator Matrix<const T>() const { return {data, rows, columns, stride}; }
};

/// The smallest multiple of `step` that is at least `value`.
template <typename Integer>
constexpr Integer round_up(Integer value, Integer step) {
  return (value + step - 1) / step * step;
}

/// The number of steps that it takes to reach `value`: value / step, rounded up.
template <typename Integer>
constexpr Integer ceil_div(Integer value, Integer step) {
  return (value + step - 1) / step;
}

}  // namespace verbatim
