#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/generic/code_product.h"
#include "support/machine_paths.h"
#include "support/noted_fetches.h"
#include "support/random.h"

namespace verbatim {
namespace {

using test::machine_paths;
using test::MachinePath;

constexpr CodeStorage kStorages[] = {kCodesUpper, kCodesBoth, kCodesBytes};
constexpr int64_t kWidth = kPanelWidth;

/// Codes as numbers, [panel][k][16], and as a CodeProduct wants them.
struct Codes {
  Codes(CodeStorage storage_, int64_t panels_, int64_t k_, uint32_t seed)
      : storage(storage_), panels(panels_), k(k_) {
    std::mt19937 generator(seed);
    const int largest = storage == kCodesUpper ? 15 : 255;
    numbers.resize(static_cast<size_t>(panels * k * kWidth));
    for (uint8_t& number : numbers) {
      // The extremes often, for the sake of whatever may overflow.
      const uint32_t draw = generator();
      number = static_cast<uint8_t>(draw % 3 == 0 ? largest : draw / 3 % static_cast<uint32_t>(largest + 1));
    }
    const size_t plane = static_cast<size_t>(panels * k * kWidth / (storage == kCodesBytes ? 1 : 2));
    codes.resize(plane);
    lower.resize(plane);
    for (int64_t p = 0; p < panels; ++p) {
      for (int64_t d = 0; d < k; ++d) {
        for (int64_t i = 0; i < kWidth; ++i) put((p * k + d) / 4, i * 4 + d % 4, number(p, d, i));
      }
    }
  }
  uint8_t number(int64_t panel, int64_t d, int64_t i) const {
    return numbers[static_cast<size_t>((panel * k + d) * kWidth + i)];
  }
  void put(int64_t quad, int64_t place, uint8_t number) {
    if (storage == kCodesBytes) {
      codes[static_cast<size_t>(quad * 64 + place)] = number;
      return;
    }
    const auto at = static_cast<size_t>(quad / 2 * 64 + place);
    const int shift = quad % 2 * 4;
    const int upper = storage == kCodesUpper ? number : number / 16;
    codes[at] = static_cast<uint8_t>(codes[at] | upper << shift);
    lower[at] = static_cast<uint8_t>(lower[at] | number % 16 << shift);
  }

  CodeStorage storage;
  int64_t panels;
  int64_t k;
  std::vector<uint8_t> numbers;
  std::vector<uint8_t> codes;
  std::vector<uint8_t> lower;
};

/// Rows of numbers up to kLargestRowCode, the extremes among them, [row][k], and as bytes, [row][2][k].
struct Rows {
  Rows(int64_t rows, int64_t k, uint32_t seed) {
    std::mt19937 generator(seed);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t d = 0; d < k; ++d) {
        const uint32_t draw = generator();
        const int32_t any = static_cast<int32_t>(draw / 16 % (2 * kLargestRowCode + 1)) - kLargestRowCode;
        const bool extreme = r == 1 || draw % 16 == 0;  // all of a row, too
        numbers.push_back(!extreme ? any : r % 2 == 1 ? kLargestRowCode : -kLargestRowCode);
      }
    }
    bytes.resize(numbers.size() * 2);
    for (int64_t i = 0; i < rows * k; ++i) set(i, k, numbers[static_cast<size_t>(i)]);
  }
  /// Makes `number` the one at `i`, counted through all rows of k numbers.
  void set(int64_t i, int64_t k, int32_t number) {
    const auto lower = static_cast<int8_t>(number & 255);
    const int64_t at = i / k * 2 * k + i % k;
    numbers[static_cast<size_t>(i)] = number;
    bytes[static_cast<size_t>(at)] = static_cast<int8_t>((number - lower) / 256);
    bytes[static_cast<size_t>(at + k)] = lower;
  }
  std::vector<int32_t> numbers;
  std::vector<int8_t> bytes;
};

std::vector<int32_t> reference(const Rows& a, int64_t rows, const Codes& codes) {
  std::vector<int32_t> sums;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t column = 0; column < codes.panels * kWidth; ++column) {
      int64_t sum = 0;
      for (int64_t d = 0; d < codes.k; ++d) {
        sum += int64_t{a.numbers[static_cast<size_t>(r * codes.k + d)]} *
               codes.number(column / kWidth, d, column % kWidth);
      }
      sums.push_back(static_cast<int32_t>(sum));
      EXPECT_EQ(sums.back(), sum);
    }
  }
  return sums;
}

class CodeKernels : public testing::TestWithParam<MachinePath> {
 protected:
  const KernelTable& kernel_ = *GetParam().table;
  const KernelTable& scalar_ = *machine_paths().front().table;

  std::vector<int32_t> product(const Rows& a, int64_t rows, const Codes& codes, int64_t margin) const {
    const int64_t columns = codes.panels * kWidth;
    const int64_t stride = columns + margin;
    std::vector<int32_t> c(static_cast<size_t>(rows * stride), -1);
    kernel_.code_product[codes.storage]({.a = a.bytes.data(),
                                         .rows = rows,
                                         .codes = codes.codes.data(),
                                         .lower = codes.storage == kCodesBoth ? codes.lower.data() : nullptr,
                                         .panel_count = codes.panels,
                                         .k = codes.k,
                                         .c = c.data(),
                                         .c_stride = stride});
    std::vector<int32_t> sums;
    for (int64_t r = 0; r < rows; ++r) {
      const auto begin = c.begin() + r * stride;
      sums.insert(sums.end(), begin, begin + columns);
      EXPECT_TRUE(std::all_of(begin + columns, begin + stride, [](int32_t x) { return x == -1; }));
    }
    return sums;
  }
};

INSTANTIATE_TEST_SUITE_P(, CodeKernels, testing::ValuesIn(machine_paths()),
                         test::path_name<testing::TestParamInfo<MachinePath>>);

TEST_P(CodeKernels, ProductsAreExactForAnyNumberOfRowsAndPanels) {
  constexpr int64_t kMostRows = 36;  // more than any path multiplies at a time
  for (const CodeStorage storage : kStorages) {
    for (const int64_t k : {64, 128, 192, 256}) {
      for (const int64_t panels : {1, 2, 3, 4, 5, 6, 7, 8}) {
        const Codes codes(storage, panels, k, static_cast<uint32_t>(k + panels));
        const Rows a(kMostRows, k, 7);
        const std::vector<int32_t> expected = reference(a, kMostRows, codes);
        for (int64_t rows = 1; rows <= kMostRows; ++rows) {
          const std::vector<int32_t> first(expected.begin(), expected.begin() + rows * panels * kWidth);
          ASSERT_EQ(product(a, rows, codes, rows % 2 * 5), first)
              << "storage " << storage << ", k " << k << ", " << panels << " panels, " << rows << " rows";
        }
      }
    }
  }
}

TEST_P(CodeKernels, TheLargestSumsOfEitherSignAreExact) {
  for (const CodeStorage storage : kStorages) {
    Codes codes(storage, 1, kMostScaledNumbers, 1);
    std::fill(codes.codes.begin(), codes.codes.end(), uint8_t{255});
    std::fill(codes.lower.begin(), codes.lower.end(), uint8_t{255});
    std::fill(codes.numbers.begin(), codes.numbers.end(),
              storage == kCodesUpper ? uint8_t{15} : uint8_t{255});
    for (int64_t rows = 1; rows <= 9; ++rows) {
      Rows a(rows, kMostScaledNumbers, 1);
      for (int64_t i = 0; i < rows * kMostScaledNumbers; ++i) {
        a.set(i, kMostScaledNumbers, i / kMostScaledNumbers % 2 == 0 ? -kLargestRowCode : kLargestRowCode);
      }
      ASSERT_EQ(product(a, rows, codes, 0), reference(a, rows, codes))
          << "storage " << storage << ", " << rows << " rows";
    }
  }
}

/// Rows that count nothing and note what would be asked for ahead.
template <typename Dot, int kStorage>
struct NotingRows {
  struct Product {
    int64_t rows;
    int64_t panel_count;
    int64_t k;
    int32_t* c;
    int64_t c_stride;
    const uint8_t* codes;
    const uint8_t* lower;
    test::NotedFetches ahead;
    test::NotedFetches ahead_lower;
  };
  static constexpr int kSumsOfRow = 1;
  template <size_t kSums>
  static void add_block(const Product&, int64_t, int64_t, const uint8_t*, const uint8_t*, int (&)[kSums]) {}
  static int total(const int* sums) { return *sums; }
};

struct NoDot {
  using Sum = int;
  static constexpr int kCodeSums = 8;
  static constexpr int kCodeStreams = 4;
  static int start(int value) { return value; }
  static void store(int, int32_t*) {}
};

TEST(CodeLoops, AskForEveryByteOnceAndInTurnWhateverTheNumberOfRowsAndPanels) {
  for (const int64_t rows : {1, 2, 3, 8, 9, 20}) {
    for (const int64_t panels : {1, 2, 3, 4, 7, 8}) {
      for (const int64_t k : {64, 192}) {
        const int64_t plane = panels * k / kCodeTileInner * code_tile_bytes(kCodesBoth);
        const std::vector<uint8_t> codes(static_cast<size_t>(plane));
        std::vector<int32_t> c(static_cast<size_t>(panels * kPanelWidth));
        test::FetchedRanges upper;
        test::FetchedRanges lower;
        generic::CodeLoops<NotingRows, NoDot, kCodesBoth>::product(
            {rows, panels, k, c.data(), 0, codes.data(), codes.data(), {&upper}, {&lower}});
        EXPECT_EQ(upper, lower);
        SCOPED_TRACE(testing::Message() << rows << " rows, " << panels << " panels, k " << k);
        test::expect_each_byte_in_turn(upper, plane);
      }
    }
  }
}

void expect_sum(float actual, const std::vector<BFloat16>& x, const std::vector<BFloat16>& y, int64_t n) {
  double sum = 0.0;
  double size = 0.0;
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    const double product = double{to_float(x[i])} * double{to_float(y[i])};
    sum += product;
    size += std::fabs(product);
  }
  EXPECT_NEAR(actual, sum, 1e-6 * size);
}

TEST_P(CodeKernels, ScaledRowsAreWithinHalfAStepAndTheSameOnEveryPath) {
  for (const float deviation : {1.0f, 1e-20f, 1e15f}) {
    const std::vector<BFloat16> x = test::random_bf16(256, 1, deviation);
    const std::vector<BFloat16> scales = test::random_bf16(256, 2);
    const std::vector<BFloat16> zeros = test::random_bf16(256, 3);
    for (const int64_t n : {64, 128, 192, 256}) {
      std::vector<int8_t> codes(static_cast<size_t>(2 * n), 99);
      std::vector<int8_t> expected(static_cast<size_t>(2 * n));
      const ScaledRow row =
          kernel_.quantize_scaled_row(x.data(), scales.data(), zeros.data(), n, codes.data());
      const ScaledRow by_scalar =
          scalar_.quantize_scaled_row(x.data(), scales.data(), zeros.data(), n, expected.data());
      EXPECT_EQ(row.step, by_scalar.step);
      EXPECT_EQ(row.scales, by_scalar.scales);
      EXPECT_EQ(row.zeros, by_scalar.zeros);
      EXPECT_EQ(codes, expected);
      double largest = 0.0;
      for (int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<size_t>(i);
        const double number = double{to_float(x[at])} * double{to_float(scales[at])};
        const int32_t code = 256 * codes[at] + codes[at + static_cast<size_t>(n)];
        ASSERT_NEAR(code * double{row.step}, number, double{row.step} * 0.51);
        ASSERT_LE(std::abs(code), kLargestRowCode);
        largest = std::max(largest, std::fabs(number));
      }
      EXPECT_NEAR(row.step * kLargestRowCode, largest, largest * 1e-6);
      expect_sum(row.scales, x, scales, n);
      expect_sum(row.zeros, x, zeros, n);
    }
  }
}

TEST_P(CodeKernels, ZerosBecomeZeros) {
  for (const float tiny : {0.0f, 1e-35f}) {
    const std::vector<BFloat16> x(64, to_bfloat16(tiny));
    const std::vector<BFloat16> ones(64, to_bfloat16(1.0f));
    std::vector<int8_t> codes(128, 99);
    EXPECT_EQ(kernel_.quantize_scaled_row(x.data(), ones.data(), ones.data(), 64, codes.data()).step, 0.0f);
    EXPECT_EQ(codes, std::vector<int8_t>(128, 0));
  }
}

TEST_P(CodeKernels, CodesStayWithinBoundsWhateverIsQuantized) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float odd : {infinity, -infinity, NAN, 3e38f}) {
    for (size_t at = 0; at < 64; ++at) {
      std::vector<BFloat16> x = test::random_bf16(64, 3);
      x[at] = to_bfloat16(odd);
      const std::vector<BFloat16> scales = test::random_bf16(64, 4, 30.0f);
      std::vector<int8_t> codes(128);
      kernel_.quantize_scaled_row(x.data(), scales.data(), scales.data(), 64, codes.data());
      for (size_t i = 0; i < 64; ++i) {
        ASSERT_LE(std::abs(256 * codes[i] + codes[i + 64]), kLargestRowCode) << odd << " at " << at;
      }
    }
  }
}

TEST_P(CodeKernels, DequantizingSumsIsTheSameOnEveryPath) {
  std::mt19937 generator(8);
  std::vector<int32_t> products(128);
  for (int32_t& product : products)
    product = static_cast<int32_t>(generator() >> 1) * (generator() % 2 ? 1 : -1);
  for (const bool accumulate : {false, true}) {
    std::vector<float> actual = test::random_floats(128, 9);
    const std::vector<float> before = actual;
    std::vector<float> expected = actual;
    kernel_.dequantize_sums(products.data(), 128, 1.7e-7f, -0.3f, accumulate, actual.data());
    scalar_.dequantize_sums(products.data(), 128, 1.7e-7f, -0.3f, accumulate, expected.data());
    EXPECT_EQ(actual, expected);
    for (size_t i = 0; i < 128; ++i) {
      const double value = products[i] * 1.7e-7 - 0.3 + (accumulate ? before[i] : 0.0);
      ASSERT_NEAR(actual[i], value, 1e-4);
    }
  }
}

}  // namespace
}  // namespace verbatim
