#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/float16.h"
#include "checkpoint/checkpoint.h"
#include "support/synthetic_model.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

/// A view of the bytes at an odd address.
struct Unaligned {
  std::string storage;
  TensorView view;

  Unaligned(DType dtype, std::vector<int64_t> shape, const std::string& bytes) : storage("x" + bytes) {
    view.dtype = dtype;
    view.shape = std::move(shape);
    view.data = std::as_bytes(std::span(storage)).subspan(1);
  }
};

TEST(TensorView, ReadsF32RowsAsTheyAre) {
  const std::vector<float> values = {1.5f,  -0.0f,   std::numeric_limits<float>::denorm_min(),
                                     3e38f, -1e-30f, 0.1f};
  const Unaligned tensor(DType::kF32, {2, 3}, test::encode(DType::kF32, values));
  for (int64_t r = 0; r < 2; ++r) {
    std::vector<float> row(3);
    tensor.view.read_row(r, row);
    for (int64_t c = 0; c < 3; ++c) EXPECT_EQ(std::signbit(row[c]), std::signbit(values[r * 3 + c]));
    for (int64_t c = 0; c < 3; ++c) EXPECT_EQ(row[c], values[r * 3 + c]);
  }
}

TEST(TensorView, ReadsEveryF16AndBF16Exactly) {
  std::string bytes;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) bytes += test::bytes_of(static_cast<uint16_t>(bits));
  const Unaligned half(DType::kF16, {256, 256}, bytes);
  const Unaligned brain(DType::kBF16, {256, 256}, bytes);
  std::vector<float> row(256);
  for (int64_t r = 0; r < 256; ++r) {
    half.view.read_row(r, row);
    for (int64_t c = 0; c < 256; ++c) {
      const float expected = to_float(Float16{static_cast<uint16_t>(r * 256 + c)});
      EXPECT_EQ(std::bit_cast<uint32_t>(row[c]), std::bit_cast<uint32_t>(expected));
    }
    brain.view.read_row(r, row);
    for (int64_t c = 0; c < 256; ++c) {
      EXPECT_EQ(std::bit_cast<uint32_t>(row[c]), static_cast<uint32_t>(r * 256 + c) << 16);
    }
  }
}

TEST(TensorView, ReadsQ8BlocksAsScaleTimesInteger) {
  std::string bytes;
  const float scales[] = {0.25f, 0x1p-24f, -3.0f, 1000.0f};  // 0x1p-24 is F16's smallest subnormal
  for (const float scale : scales) {
    bytes += test::bytes_of(to_float16(scale).bits);
    for (int i = 0; i < 32; ++i) bytes += static_cast<char>(static_cast<int8_t>(i * 8 - 128));
  }
  const Unaligned tensor(DType::kQ8_0, {2, 64}, bytes);
  ASSERT_EQ(tensor.view.data.size(), dtype_bytes(DType::kQ8_0, 128));
  std::vector<float> row(64);
  for (int64_t r = 0; r < 2; ++r) {
    tensor.view.read_row(r, row);
    for (int64_t c = 0; c < 64; ++c) {
      const double expected =
          static_cast<double>(scales[r * 2 + c / 32]) * static_cast<double>(c % 32 * 8 - 128);
      EXPECT_EQ(static_cast<double>(row[c]), expected);
    }
  }
}

TEST(TensorView, CountsAllButTheLastDimensionAsRows) {
  TensorView view;
  EXPECT_EQ(view.rows(), 1);
  EXPECT_EQ(view.columns(), 1);
  view.shape = {7};
  EXPECT_EQ(view.rows(), 1);
  EXPECT_EQ(view.columns(), 7);
  view.shape = {2, 3, 5};
  EXPECT_EQ(view.rows(), 6);
  EXPECT_EQ(view.columns(), 5);
}

TEST(TensorView, RefusesRowsThatAreNotThere) {
  const Unaligned tensor(DType::kF32, {2, 3}, std::string(24, '\0'));
  std::vector<float> row(3);
  EXPECT_THROW(tensor.view.read_row(2, row), Error);
  EXPECT_THROW(tensor.view.read_row(-1, row), Error);
  row.resize(4);
  EXPECT_THROW(tensor.view.read_row(0, row), Error);
}

}  // namespace
}  // namespace verbatim
