#include "base/matrix.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace verbatim {
namespace {

TEST(Matrix, ViewsRowsAtTheirStride) {
  std::vector<int> data(12);
  std::iota(data.begin(), data.end(), 0);
  const Matrix<int> dense(data.data(), 3, 4);
  EXPECT_EQ(dense.stride, 4);
  EXPECT_EQ(dense.row(2)[1], 9);
  const Matrix<int> narrow(data.data(), 3, 2, 4);
  EXPECT_EQ(narrow.row_span(1).size(), 2u);
  EXPECT_EQ(narrow.row_span(1)[1], 5);
}

TEST(Matrix, SlicesWithoutCopying) {
  std::vector<int> data(12);
  const Matrix<int> matrix(data.data(), 4, 2, 3);
  const Matrix<int> slice = matrix.slice(1, 2);
  EXPECT_EQ(slice.rows, 2);
  EXPECT_EQ(slice.columns, 2);
  slice.row(1)[0] = 7;
  EXPECT_EQ(data[6], 7);
  EXPECT_EQ(matrix.slice(4, 0).rows, 0);
}

TEST(Matrix, BecomesReadOnlyByItself) {
  int data[2] = {3, 4};
  const Matrix<const int> view = Matrix<int>(data, 1, 2);
  EXPECT_EQ(view.row(0)[1], 4);
}

TEST(RoundUp, GivesTheNextMultiple) {
  EXPECT_EQ(round_up(0, 16), 0);
  EXPECT_EQ(round_up(1, 16), 16);
  EXPECT_EQ(round_up(16, 16), 16);
  EXPECT_EQ(round_up(int64_t{5000000001}, int64_t{10}), 5000000010);
}

}  // namespace
}  // namespace verbatim
