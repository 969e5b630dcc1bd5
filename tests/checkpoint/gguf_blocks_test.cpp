#include "checkpoint/gguf_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "base/float16.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf_types.h"
#include "checkpoint/written_block.h"
#include "checkpoint/written_codebook_blocks.h"

namespace verbatim {
namespace {

using test::Block;
using test::Chooser;
using test::number;

Block q4(Chooser& choose, bool with_least) {
  Block block(with_least ? DType::kQ4_1 : DType::kQ4_0);
  const float scale = choose.half();
  const float least = choose.half();
  block.put_half(0, scale);
  if (with_least) block.put_half(2, least);
  for (size_t i = 0; i < 32; ++i) {
    const uint32_t code = choose.below(16);
    block.put((with_least ? 4 : 2) + i % 16, i < 16 ? 0 : 4, 4, code);
    block.values[i] = with_least ? scale * number(code) + least : scale * number(code, -8);
  }
  return block;
}

Block q5(Chooser& choose, bool with_least) {
  Block block(with_least ? DType::kQ5_1 : DType::kQ5_0);
  const size_t begin = with_least ? 4 : 2;
  const float scale = choose.half();
  const float least = choose.half();
  block.put_half(0, scale);
  if (with_least) block.put_half(2, least);
  for (size_t i = 0; i < 32; ++i) {
    const uint32_t code = choose.below(32);
    block.put(begin + i / 8, static_cast<int>(i % 8), 1, code >> 4);
    block.put(begin + 4 + i % 16, i < 16 ? 0 : 4, 4, code & 15);
    block.values[i] = with_least ? scale * number(code) + least : scale * number(code, -16);
  }
  return block;
}

Block q8_0(Chooser& choose) {
  Block block(DType::kQ8_0);
  const float scale = choose.half();
  block.put_half(0, scale);
  for (size_t i = 0; i < 32; ++i) {
    const uint32_t code = choose.below(256);
    block.put(2 + i, 0, 8, code);
    block.values[i] = scale * number(code, code < 128 ? 0 : -256);
  }
  return block;
}

Block q2_k(Chooser& choose) {
  Block block(DType::kQ2_K);
  const float scale = choose.half();
  const float offset = choose.half();
  block.put_half(80, scale);
  block.put_half(82, offset);
  size_t i = 0;
  for (size_t half = 0; half < 2; ++half) {
    for (int place = 0; place < 4; ++place) {
      for (size_t sixteen = 0; sixteen < 2; ++sixteen) {
        const uint32_t s = choose.below(16);
        const uint32_t m = choose.below(16);
        block.put(i / 16, 0, 4, s);
        block.put(i / 16, 4, 4, m);
        for (size_t l = 0; l < 16; ++l, ++i) {
          const uint32_t code = choose.below(4);
          block.put(16 + 32 * half + 16 * sixteen + l, 2 * place, 2, code);
          const float a = scale * number(s);
          const float b = offset * number(m);
          block.values[i] = a * number(code) - b;
        }
      }
    }
  }
  return block;
}

Block q3_k(Chooser& choose) {
  Block block(DType::kQ3_K);
  const float scale = choose.half();
  block.put_half(108, scale);
  size_t i = 0;
  for (size_t half = 0; half < 2; ++half) {
    for (size_t place = 0; place < 4; ++place) {
      for (size_t sixteen = 0; sixteen < 2; ++sixteen) {
        const uint32_t s = choose.below(64);
        const size_t group = i / 16;
        block.put(96 + group % 8, group < 8 ? 0 : 4, 4, s & 15);
        block.put(104 + group % 4, static_cast<int>(group / 4 * 2), 2, s >> 4);
        for (size_t l = 0; l < 16; ++l, ++i) {
          const uint32_t code = choose.below(8);
          block.put(32 + 32 * half + 16 * sixteen + l, static_cast<int>(2 * place), 2, code & 3);
          block.put(16 * sixteen + l, static_cast<int>(4 * half + place), 1, code >> 2);
          block.values[i] = scale * number(s, -32) * number(code, -4);
        }
      }
    }
  }
  return block;
}

/// The eight scales and offsets of Q4_K and Q5_K, of six bits each, in twelve bytes.
void put_six_bits(Block& block, size_t group, uint32_t s, uint32_t m) {
  if (group < 4) {
    block.put(4 + group, 0, 6, s);
    block.put(8 + group, 0, 6, m);
  } else {
    block.put(8 + group, 0, 4, s & 15);
    block.put(8 + group, 4, 4, m & 15);
    block.put(group, 6, 2, s >> 4);
    block.put(4 + group, 6, 2, m >> 4);
  }
}

Block q4_or_q5_k(Chooser& choose, bool five) {
  Block block(five ? DType::kQ5_K : DType::kQ4_K);
  const float scale = choose.half();
  const float offset = choose.half();
  block.put_half(0, scale);
  block.put_half(2, offset);
  for (size_t group = 0; group < 8; ++group) {
    const uint32_t s = choose.below(64);
    const uint32_t m = choose.below(64);
    put_six_bits(block, group, s, m);
    for (size_t l = 0; l < 32; ++l) {
      const uint32_t code = choose.below(five ? 32 : 16);
      block.put((five ? 48 : 16) + group / 2 * 32 + l, group % 2 == 0 ? 0 : 4, 4, code & 15);
      if (five) block.put(16 + l, static_cast<int>(group), 1, code >> 4);
      const float a = scale * number(s);
      const float b = offset * number(m);
      block.values[group * 32 + l] = a * number(code) - b;
    }
  }
  return block;
}

Block q6_k(Chooser& choose) {
  Block block(DType::kQ6_K);
  const float scale = choose.half();
  block.put_half(208, scale);
  std::vector<uint32_t> scales(16);
  for (size_t group = 0; group < 16; ++group) {
    scales[group] = choose.below(256);
    block.put(192 + group, 0, 8, scales[group]);
  }
  for (size_t half = 0; half < 2; ++half) {
    for (size_t quarter = 0; quarter < 4; ++quarter) {
      for (size_t l = 0; l < 32; ++l) {
        const size_t i = half * 128 + quarter * 32 + l;
        const uint32_t code = choose.below(64);
        block.put(half * 64 + quarter % 2 * 32 + l, quarter < 2 ? 0 : 4, 4, code & 15);
        block.put(128 + half * 32 + l, static_cast<int>(2 * quarter), 2, code >> 4);
        const uint32_t s = scales[i / 16];
        block.values[i] = scale * number(s, s < 128 ? 0 : -256) * number(code, -32);
      }
    }
  }
  return block;
}

constexpr int kUneven[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

Block iq4_nl(Chooser& choose) {
  Block block(DType::kIQ4_NL);
  const float scale = choose.half();
  block.put_half(0, scale);
  for (size_t i = 0; i < 32; ++i) {
    const uint32_t code = choose.below(16);
    block.put(2 + i % 16, i < 16 ? 0 : 4, 4, code);
    block.values[i] = scale * number(0, kUneven[code]);
  }
  return block;
}

Block iq4_xs(Chooser& choose) {
  Block block(DType::kIQ4_XS);
  const float scale = choose.half();
  block.put_half(0, scale);
  for (size_t group = 0; group < 8; ++group) {
    const uint32_t s = choose.below(64);
    block.put(4 + group / 2, group % 2 == 0 ? 0 : 4, 4, s & 15);
    block.put(2 + group / 4, static_cast<int>(group % 4 * 2), 2, s >> 4);
    for (size_t i = 0; i < 32; ++i) {
      const uint32_t code = choose.below(16);
      block.put(8 + group * 16 + i % 16, i < 16 ? 0 : 4, 4, code);
      block.values[group * 32 + i] = scale * number(s, -32) * number(0, kUneven[code]);
    }
  }
  return block;
}

Block mxfp4(Chooser& choose) {
  constexpr float kE2m1[] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  Block block(DType::kMXFP4);
  const uint32_t exponent = choose.below(256);
  block.put(0, 0, 8, exponent);
  for (size_t i = 0; i < 32; ++i) {
    const uint32_t code = choose.below(16);
    block.put(1 + i % 16, i < 16 ? 0 : 4, 4, code);
    const double magnitude =
        std::ldexp(static_cast<double>(kE2m1[code & 7]), static_cast<int>(exponent) - 127);
    block.values[i] = static_cast<float>(code > 8 ? -magnitude : magnitude);
  }
  return block;
}

struct Writer {
  DType dtype;
  std::function<Block(Chooser&)> write;
};
void PrintTo(const Writer& writer, std::ostream* out) {
  *out << dtype_name(writer.dtype);
}

class GgufBlocks : public testing::TestWithParam<Writer> {};

const Writer kWriters[] = {
    {DType::kQ4_0, [](Chooser& choose) { return q4(choose, false); }},
    {DType::kQ4_1, [](Chooser& choose) { return q4(choose, true); }},
    {DType::kQ5_0, [](Chooser& choose) { return q5(choose, false); }},
    {DType::kQ5_1, [](Chooser& choose) { return q5(choose, true); }},
    {DType::kQ8_0, q8_0},
    {DType::kQ2_K, q2_k},
    {DType::kQ3_K, q3_k},
    {DType::kQ4_K, [](Chooser& choose) { return q4_or_q5_k(choose, false); }},
    {DType::kQ5_K, [](Chooser& choose) { return q4_or_q5_k(choose, true); }},
    {DType::kQ6_K, q6_k},
    {DType::kIQ2_XXS, test::iq2_xxs},
    {DType::kIQ2_XS, test::iq2_xs},
    {DType::kIQ2_S, test::iq2_s},
    {DType::kIQ3_XXS, test::iq3_xxs},
    {DType::kIQ3_S, test::iq3_s},
    {DType::kIQ4_NL, iq4_nl},
    {DType::kIQ4_XS, iq4_xs},
    {DType::kMXFP4, mxfp4},
};
INSTANTIATE_TEST_SUITE_P(, GgufBlocks, testing::ValuesIn(kWriters),
                         [](const auto& info) { return dtype_name(info.param.dtype); });

TEST_P(GgufBlocks, AreReadAsTheFormatDefinesThem) {
  const BlockType& type = *block_type(GetParam().dtype);
  for (int round = 0; round < 200; ++round) {
    Chooser choose(std::min(round, 2), static_cast<uint32_t>(round));
    const Block block = GetParam().write(choose);
    std::vector<float> values(type.elements);
    type.dequantize(block.bytes.data(), values.data());
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(values[i], block.values[i]) << "round " << round << " element " << i;
    }
  }
}

TEST_P(GgufBlocks, RowsAreTheirBlocksOneAfterTheOther) {
  Chooser choose(2, 7);
  std::string bytes = "x";  // so that blocks lie at odd addresses
  std::vector<float> expected;
  for (int i = 0; i < 6; ++i) {
    const Block block = GetParam().write(choose);
    bytes.append(block.bytes.begin(), block.bytes.end());
    expected.insert(expected.end(), block.values.begin(), block.values.end());
  }
  const size_t columns = expected.size() / 3;
  TensorView view;
  view.dtype = GetParam().dtype;
  view.shape = {3, static_cast<int64_t>(columns)};
  view.data = std::as_bytes(std::span(bytes)).subspan(1);
  ASSERT_EQ(view.data.size(), dtype_bytes(view.dtype, expected.size()));
  for (size_t r = 0; r < 3; ++r) {
    std::vector<float> row(columns);
    view.read_row(static_cast<int64_t>(r), row);
    for (size_t i = 0; i < columns; ++i) ASSERT_EQ(row[i], expected[r * columns + i]) << r << " " << i;
  }
}

TEST_P(GgufBlocks, OfAnyBytesAreReadWithoutHarm) {
  const BlockType& type = *block_type(GetParam().dtype);
  std::mt19937 generator(3);
  for (int round = 0; round < 100; ++round) {
    // Of the exact sizes, so that a sanitizer sees what lies beyond.
    std::vector<uint8_t> bytes(type.bytes);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(round == 0 ? 255u : generator());
    std::vector<float> values(type.elements);
    type.dequantize(bytes.data(), values.data());
  }
}

TEST_P(GgufBlocks, WithCodesAreTheProductsOfTheseAndOneScale) {
  const BlockType& type = *block_type(GetParam().dtype);
  const DType with[] = {DType::kQ4_0, DType::kQ5_0, DType::kQ8_0, DType::kIQ4_NL};
  ASSERT_EQ(type.codes != nullptr,
            std::find(std::begin(with), std::end(with), GetParam().dtype) != std::end(with));
  if (type.codes == nullptr) return;
  for (int round = 0; round < 20; ++round) {
    Chooser choose(std::min(round, 2), static_cast<uint32_t>(round));
    const Block block = GetParam().write(choose);
    TensorView view;
    view.dtype = GetParam().dtype;
    view.shape = {1, 32};
    view.data = std::as_bytes(std::span(block.bytes));
    ASSERT_TRUE(view.has_codes());
    std::vector<int8_t> codes(32);
    Float16 scale{};
    view.read_codes(0, codes, {&scale, 1});
    for (size_t i = 0; i < 32; ++i) {
      EXPECT_EQ(to_float(scale) * static_cast<float>(codes[i]), block.values[i]) << i;
    }
  }
}

TEST(GgufTypes, HaveTheNumbersOfTheFormat) {
  const std::map<uint32_t, std::string> numbers = {
      {0, "F32"},      {1, "F16"},     {2, "Q4_0"},     {3, "Q4_1"},    {6, "Q5_0"},   {7, "Q5_1"},
      {8, "Q8_0"},     {10, "Q2_K"},   {11, "Q3_K"},    {12, "Q4_K"},   {13, "Q5_K"},  {14, "Q6_K"},
      {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},
      {23, "IQ4_XS"},  {30, "BF16"},   {39, "MXFP4"}};
  for (uint32_t number = 0; number < 100; ++number) {
    const std::optional<DType> dtype = gguf_dtype(number);
    ASSERT_EQ(dtype.has_value(), numbers.contains(number)) << number;
    if (!dtype) continue;
    EXPECT_EQ(dtype_name(*dtype), numbers.at(number));
    EXPECT_EQ(gguf_type_name(number), numbers.at(number));
    EXPECT_EQ(gguf_number(*dtype), number);
  }
  EXPECT_EQ(gguf_type_name(19), "IQ1_S");
  EXPECT_EQ(gguf_type_name(99), "number 99");
}

}  // namespace
}  // namespace verbatim
