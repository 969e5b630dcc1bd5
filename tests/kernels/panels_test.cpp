#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "formats/mxfp4.h"
#include "formats/tile_views.h"
#include "kernels/generic/panels_float.h"
#include "support/machine_paths.h"
#include "support/noted_fetches.h"
#include "support/packed.h"
#include "support/random.h"

namespace verbatim {
namespace panels_test {
namespace {

using test::machine_paths;
using test::MachinePath;

constexpr int64_t kK = 96;
constexpr int64_t kColumns = 7 * kPanelWidth;  // blocks of two and four panels, and single ones
constexpr int64_t kMostRows = 100;

std::vector<int64_t> row_counts() {
  std::vector<int64_t> counts;
  for (int64_t m = 1; m <= 65; ++m) counts.push_back(m);
  counts.push_back(kMostRows);
  return counts;
}

PackedMatrix random_panels(Format format, uint32_t seed) {
  return test::pack_store(kColumns, kK, test::random_floats(kColumns * kK, seed, 0.1f), format);
}

template <typename A, typename T>
std::vector<float> multiply(void (*kernel)(const PanelProduct<A, T>&), const std::vector<A>& x, int64_t rows,
                            const PackedMatrix& weights, const std::vector<float>& start = {}) {
  std::vector<float> c = start;
  c.resize(static_cast<size_t>(rows * kColumns));
  kernel({.a = x.data(),
          .a_stride = kK,
          .rows = rows,
          .panels = weights.plane(0).as<const T>(),
          .panel_stride = kK * kPanelWidth,
          .panel_count = kColumns / kPanelWidth,
          .k = kK,
          .c = c.data(),
          .c_stride = kColumns,
          .accumulate = !start.empty()});
  return c;
}

template <typename A>
void expect_close_to_reference(const std::vector<A>& x, int64_t rows, const PackedMatrix& weights,
                               const std::vector<float>& c) {
  for (int64_t n = 0; n < kColumns; ++n) {
    const std::vector<float> column = test::unpacked_column(weights, readings(weights.format).front(), n);
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0.0;
      for (int64_t k = 0; k < kK; ++k) {
        float a;
        if constexpr (std::is_same_v<A, float>) {
          a = x[static_cast<size_t>(r * kK + k)];
        } else {
          a = to_float(x[static_cast<size_t>(r * kK + k)]);
        }
        sum += static_cast<double>(a) * column[static_cast<size_t>(k)];
      }
      ASSERT_NEAR(c[static_cast<size_t>(r * kColumns + n)], sum, 1e-5) << "row " << r << " column " << n;
    }
  }
}

/// Any number of rows gives each row the bits that it gets alone, from zero and added to something.
template <typename A, typename T>
void expect_rows_independent(void (*kernel)(const PanelProduct<A, T>&), const std::vector<A>& x,
                             const PackedMatrix& weights) {
  const std::vector<float> start = test::random_floats(kMostRows * kColumns, 77);
  for (const bool accumulate : {false, true}) {
    std::vector<float> alone;
    for (int64_t r = 0; r < kMostRows; ++r) {
      const std::vector<A> row(x.begin() + r * kK, x.begin() + (r + 1) * kK);
      std::vector<float> from;
      if (accumulate) from.assign(start.begin() + r * kColumns, start.begin() + (r + 1) * kColumns);
      const std::vector<float> c = multiply(kernel, row, 1, weights, from);
      alone.insert(alone.end(), c.begin(), c.end());
    }
    for (const int64_t rows : row_counts()) {
      std::vector<float> from;
      if (accumulate) from.assign(start.begin(), start.begin() + rows * kColumns);
      const std::vector<float> c = multiply(kernel, x, rows, weights, from);
      ASSERT_EQ(std::memcmp(c.data(), alone.data(), c.size() * sizeof(float)), 0) << rows << " rows";
    }
  }
}

class Panels : public testing::TestWithParam<MachinePath> {
 protected:
  const KernelTable& kernel_ = *GetParam().table;
};

INSTANTIATE_TEST_SUITE_P(, Panels, testing::ValuesIn(machine_paths()),
                         test::path_name<testing::TestParamInfo<MachinePath>>);

TEST_P(Panels, Bf16IsCloseToTheReference) {
  const auto x = test::random_bf16(kMostRows * kK, 1);
  const auto weights = random_panels(Format::kBf16, 2);
  expect_close_to_reference(x, kMostRows, weights, multiply(kernel_.panels_bf16, x, kMostRows, weights));
}

TEST_P(Panels, F16IsCloseToTheReference) {
  const auto x = test::random_floats(kMostRows * kK, 1);
  const auto weights = random_panels(Format::kF16, 2);
  expect_close_to_reference(x, kMostRows, weights, multiply(kernel_.panels_f16, x, kMostRows, weights));
}

TEST_P(Panels, F32IsCloseToTheReference) {
  const auto x = test::random_floats(kMostRows * kK, 1);
  const auto weights = random_panels(Format::kF32, 2);
  expect_close_to_reference(x, kMostRows, weights, multiply(kernel_.panels_f32, x, kMostRows, weights));
}

TEST_P(Panels, Bf16RowsAreIndependent) {
  expect_rows_independent(kernel_.panels_bf16, test::random_bf16(kMostRows * kK, 3),
                          random_panels(Format::kBf16, 4));
}

TEST_P(Panels, F16RowsAreIndependent) {
  expect_rows_independent(kernel_.panels_f16, test::random_floats(kMostRows * kK, 3),
                          random_panels(Format::kF16, 4));
}

TEST_P(Panels, F32RowsAreIndependent) {
  expect_rows_independent(kernel_.panels_f32, test::random_floats(kMostRows * kK, 3),
                          random_panels(Format::kF32, 4));
}

// Products of BF16 numbers are exact in float, so paths that add one product at a time agree to the last bit.
TEST(Bf16Panels, PathsWithoutDotProductsAgreeBitForBit) {
  const auto x = test::random_bf16(8 * kK, 5);
  const auto weights = random_panels(Format::kBf16, 6);
  const std::vector<float> expected = multiply(machine_paths().front().table->panels_bf16, x, 8, weights);
  for (const MachinePath& path : machine_paths()) {
    if (std::string_view(path.table->rounding) != kPortableRounding) continue;
    EXPECT_EQ(multiply(path.table->panels_bf16, x, 8, weights), expected) << path.name;
  }
}

/// A vector that computes nothing, of which four fit into the registers.
struct NoFloats {
  static constexpr int kSums = 4;
  static NoFloats set(float) { return {}; }
  static NoFloats load(const float*) { return {}; }
  static void load_pairs(const BFloat16*, NoFloats*, NoFloats*) {}
  void store(float*) const {}
};
NoFloats fma_of_bf16(NoFloats, NoFloats, NoFloats sum) {
  return sum;
}

/// The operands of a product with panels in BF16 that notes what it asks for ahead.
struct NotingProduct {
  const BFloat16* a;
  int64_t a_stride;
  int64_t rows;
  const BFloat16* panels;
  int64_t panel_stride;
  int64_t panel_count;
  int64_t k;
  float* c;
  int64_t c_stride;
  bool accumulate;
  test::NotedFetches ahead;
};

TEST(Bf16Panels, OneRowAsksForEveryByteAheadOnceAndInTurn) {
  for (const int64_t panels : {1, 2, 3, 4, 5, 8}) {
    for (const int64_t k : {32, 128}) {
      SCOPED_TRACE(testing::Message() << panels << " panels, k " << k);
      const std::vector<BFloat16> a(static_cast<size_t>(k));
      const std::vector<BFloat16> weights(static_cast<size_t>(panels * k * kPanelWidth));
      std::vector<float> c(static_cast<size_t>(panels * kPanelWidth));
      test::FetchedRanges ranges;
      generic::for_each_block<generic::SumsMicro<generic::Bf16Adding<NoFloats>>>(
          NotingProduct{a.data(),
                        k,
                        1,
                        weights.data(),
                        k * kPanelWidth,
                        panels,
                        k,
                        c.data(),
                        panels * kPanelWidth,
                        false,
                        {&ranges}});
      test::expect_each_byte_in_turn(ranges, static_cast<int64_t>(weights.size() * sizeof(BFloat16)));
    }
  }
}

/// The blocks that a walk calls for, with the lines of memory that each asks for ahead.
struct NotedBlocks {
  /// The sums of four vectors fit into the registers, and those of odd blocks do, too.
  static constexpr int kSums = 4;
  static constexpr bool kOddBlocks = true;
  static std::map<std::pair<int64_t, int64_t>, int>& met() {
    static std::map<std::pair<int64_t, int64_t>, int> times;
    return times;
  }
  static std::set<int64_t>& lines() {
    static std::set<int64_t> numbers;
    return numbers;
  }

  template <int kRows, int kPanels>
  static void block(const generic::WidenedProduct& p, int64_t row, int64_t panel) {
    for (int64_t r = row; r < row + kRows; ++r) {
      for (int64_t i = panel; i < panel + kPanels; ++i) ++met()[{r, i}];
    }
    const generic::BlockFetch fetch = generic::block_fetch<kRows, kOddBlocks>(p, row, panel);
    const char* const first = reinterpret_cast<const char*>(p.panels);
    for (int64_t pair = 0; pair < p.k / 2; ++pair) {
      for (int64_t i = 0; i < kPanels; ++i) {
        const int64_t ahead = i * p.panel_stride * int64_t{sizeof(BFloat16)};
        lines().insert((fetch.from - first + pair * fetch.step + ahead) / 64);
      }
    }
  }
};

TEST(Bf16Panels, BlocksMeetEachRowAndPanelOnceAndAskForAllPanelsThatFollow) {
  constexpr int64_t kInputs = 64;
  constexpr int64_t kLines = kInputs * kPanelWidth * int64_t{sizeof(BFloat16)} / 64;  // of a panel
  for (int64_t rows = 1; rows <= 41; ++rows) {
    for (const int64_t panels : {1, 2, 3, 4, 7}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << panels << " panels");
      // Room for what is asked for behind the last panel.
      const std::vector<BFloat16> weights(static_cast<size_t>(4 * (panels + 2) * kInputs * kPanelWidth));
      generic::WidenedProduct product{};
      product.rows = rows;
      product.panels = weights.data();
      product.panel_stride = kInputs * kPanelWidth;
      product.panel_count = panels;
      product.k = kInputs;
      product.behind = weights.data() + panels * product.panel_stride;
      NotedBlocks::met().clear();
      NotedBlocks::lines().clear();
      generic::for_each_block<NotedBlocks>(product);
      EXPECT_EQ(std::ssize(NotedBlocks::met()), rows * panels);
      for (const auto& [place, times] : NotedBlocks::met()) EXPECT_EQ(times, 1) << place.first;
      if (rows <= 5) continue;  // one block a panel, which asks for a place some bytes ahead
      const int64_t together = generic::panels_of_many_rows(rows);
      for (int64_t line = together * kLines; line < (panels + 1) * kLines; ++line) {
        EXPECT_TRUE(NotedBlocks::lines().contains(line)) << "line " << line;
      }
    }
  }
}

/// Random activations in int8, as Int8Rows holds them.
struct Int8Activations {
  Int8Activations(const KernelTable& kernel, Format weights, int64_t rows, int64_t inputs)
      : k(inputs),
        codes(static_cast<size_t>(rows * k + kInnerStep)),
        scales(static_cast<size_t>(rows * groups())),
        sums(static_cast<size_t>(rows * groups())) {
    const std::vector<float> x = test::random_floats(static_cast<size_t>(rows * k), 7);
    const auto quantize = weights == Format::kInt8 ? kernel.quantize_int8 : kernel.quantize_wide;
    for (int64_t r = 0; r < rows; ++r) {
      quantize(x.data() + r * k, k, codes.data() + r * k, scales.data() + r * groups(),
               sums.data() + r * groups());
    }
  }

  int64_t groups() const { return k / kInnerStep; }
  Int8Rows rows(int64_t first, int64_t count) const {
    return {codes.data() + first * k,
            scales.data() + first * groups(),
            sums.data() + first * groups(),
            count,
            k,
            k};
  }

  int64_t k;
  std::vector<int8_t> codes;
  std::vector<float> scales;
  std::vector<int32_t> sums;
};

/// A format with readings in integers.
class IntegerProducts : public testing::TestWithParam<std::tuple<MachinePath, Format>> {
 protected:
  const KernelTable& kernel_ = *std::get<0>(GetParam()).table;
  const Format format_ = std::get<1>(GetParam());
};

INSTANTIATE_TEST_SUITE_P(, IntegerProducts,
                         testing::Combine(testing::ValuesIn(machine_paths()),
                                          testing::Values(Format::kMxfp4, Format::kBsfp, Format::kInt4,
                                                          Format::kInt4Asymmetric, Format::kInt8)),
                         [](const auto& info) { return test::path_and_format(info); });

void multiply_integers(const KernelTable& kernel, const Int8Rows& a, const PackedMatrix& weights, float* c) {
  const IntegerView view = integer_view(weights, 0, weights.panels());
  kernel.integer_product[view.weights](a, view.panels, c, kColumns);
}

TEST_P(IntegerProducts, EqualTheScalarPathBitForBitWithAnyNumberOfRows) {
  const KernelTable& scalar = *machine_paths().front().table;
  const Int8Activations activations(scalar, format_, kMostRows, kK);
  const PackedMatrix weights = random_panels(format_, 8);
  std::vector<float> expected(kMostRows * kColumns);
  for (int64_t r = 0; r < kMostRows; ++r) {
    multiply_integers(scalar, activations.rows(r, 1), weights, expected.data() + r * kColumns);
  }
  for (const int64_t rows : row_counts()) {
    std::vector<float> c(static_cast<size_t>(rows * kColumns), -1.0f);
    multiply_integers(kernel_, activations.rows(0, rows), weights, c.data());
    ASSERT_EQ(std::memcmp(c.data(), expected.data(), c.size() * sizeof(float)), 0) << rows << " rows";
  }
}

TEST_P(IntegerProducts, EqualTheScalarPathBitForBitOverManyInputsOfManyMagnitudes) {
  constexpr int64_t kInputs = 67 * kInnerStep;  // a group of 128 is cut off
  constexpr int64_t kRows = 13;
  std::vector<float> weights = test::random_floats(kColumns * kInputs, 10, 0.1f);
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = std::ldexp(weights[i], -static_cast<int>(i / kInnerStep * 7 % 11));
  }
  const PackedMatrix store = test::pack_store(kColumns, kInputs, weights, format_);
  const KernelTable& scalar = *machine_paths().front().table;
  const Int8Activations activations(scalar, format_, kRows, kInputs);
  std::vector<float> expected(kRows * kColumns);
  multiply_integers(scalar, activations.rows(0, kRows), store, expected.data());
  for (int64_t rows = 1; rows <= kRows; ++rows) {
    std::vector<float> c(static_cast<size_t>(rows * kColumns), -1.0f);
    multiply_integers(kernel_, activations.rows(0, rows), store, c.data());
    ASSERT_EQ(std::memcmp(c.data(), expected.data(), c.size() * sizeof(float)), 0) << rows << " rows";
  }
}

TEST_P(IntegerProducts, AreTheProductOfTheDequantizedOperands) {
  const Int8Activations activations(kernel_, format_, 1, kK);
  const PackedMatrix weights = random_panels(format_, 9);
  const Reading reading = readings(format_)[1];  // all but the first are in integers
  std::vector<float> c(kColumns);
  multiply_integers(kernel_, activations.rows(0, 1), weights, c.data());
  for (int64_t n = 0; n < kColumns; ++n) {
    const std::vector<float> column = test::unpacked_column(weights, reading, n);
    double sum = 0.0;
    for (size_t k = 0; k < kK; ++k) {
      const size_t code = k / 4 * 4 + static_cast<size_t>(kQuadOrder[k % 4]);
      sum += 2.0 * activations.scales[k / 32] * activations.codes[code] * column[k];
    }
    ASSERT_NEAR(c[static_cast<size_t>(n)], sum, 1e-5);
  }
}

// A matrix of one code alone, for every code, with the largest activations of either sign: sums of sixteen
// bits have room for all that they take.
TEST_P(Panels, SumsOfTheLargestIntegersHaveTheBitsOfTheScalarPath) {
  constexpr int64_t kRows = 9;
  std::vector<int8_t> activations(kRows * kK + kInnerStep);
  const std::vector<float> scales(kRows * kK / kInnerStep, 0.5f);
  std::vector<int32_t> sums(scales.size());
  for (size_t i = 0; i < kRows * kK; ++i) {
    activations[i] = i / kK % 2 == 0 ? 127 : -127;
    sums[i / kInnerStep] += activations[i];
  }
  const Int8Rows rows = {activations.data(), scales.data(), sums.data(), kRows, kK, kK};
  for (const Format format : {Format::kMxfp4, Format::kBsfp, Format::kInt4, Format::kInt4Asymmetric,
                              Format::kInt8, Format::kQ8_0}) {
    PackedMatrix weights = random_panels(format, 11);
    const int step = format == Format::kInt8 ? 1 : 0x11;  // other formats have the code in both nibbles
    for (int code = 0; code < 256; code += step) {
      std::fill_n(weights.plane(0).as<uint8_t>(), weights.plane(0).size(), static_cast<uint8_t>(code));
      std::vector<float> expected(kRows * kColumns);
      multiply_integers(*machine_paths().front().table, rows, weights, expected.data());
      std::vector<float> c(expected.size());
      multiply_integers(kernel_, rows, weights, c.data());
      ASSERT_EQ(std::memcmp(c.data(), expected.data(), c.size() * sizeof(float)), 0)
          << format_name(format) << ", code " << code;
    }
  }
}

TEST_P(Panels, Mxfp4UnpacksToTheReferenceForEveryCodeAndExponent) {
  PackedMatrix matrix = make_matrix(Format::kMxfp4, kPanelWidth, kInnerStep);
  matrix.planes.emplace_back(256);
  matrix.planes.emplace_back(kPanelWidth);
  std::vector<BFloat16> unpacked(kPanelWidth * kInnerStep);
  const TileView view = tile_view(matrix, Reading::kMxfp4W4A16);
  for (int exponent = 3; exponent <= 252; ++exponent) {
    for (size_t i = 0; i < 256; ++i) {
      matrix.plane(0).as<uint8_t>()[i] = static_cast<uint8_t>(i * 37 + i / 7);
    }
    for (size_t i = 0; i < kPanelWidth; ++i) {
      matrix.plane(1).as<uint8_t>()[i] =
          static_cast<uint8_t>(3 + (exponent + static_cast<int>(i) * 13) % 250);
    }
    uint64_t escaped = 0;
    kernel_.unpack_tiles[view.reading](view.panels, 0, 0, 1, &escaped,
                                       reinterpret_cast<uint16_t*>(unpacked.data()));
    for (int64_t n = 0; n < kPanelWidth; ++n) {
      const std::vector<float> column = test::unpacked_column(matrix, Reading::kMxfp4W4A16, n);
      for (int64_t k = 0; k < kInnerStep; ++k) {
        const BFloat16 actual = unpacked[static_cast<size_t>(k / 2 * 32 + n * 2 + k % 2)];
        // -0 is +0 here: both are nothing in a product.
        const float weight = column[static_cast<size_t>(k)] + 0.0f;
        ASSERT_EQ(actual.bits, to_bfloat16(weight).bits) << "exponent " << exponent;
        ASSERT_EQ(to_float(actual), weight) << "the BF16 value must be exact";
      }
    }
  }
}

}  // namespace
}  // namespace panels_test
}  // namespace verbatim
