#include "kernels/blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/thread_team.h"
#include "formats/two_byte_rows.h"
#include "support/machine_paths.h"

namespace verbatim {
namespace {

using test::machine_paths;
using test::MachinePath;
using test::SelectedKernels;

constexpr int64_t kBlocks = 2;
constexpr int64_t kInputs = kBlocks * kBlockInputs;
constexpr int64_t kPanels = 5;  // four side by side, and one alone
constexpr int64_t kColumns = kPanels * kPanelWidth;
constexpr int64_t kMostRows = 130;

/// Panels of blocks of one shape: every code, scale and offset is drawn, or all are the largest in magnitude.
struct Panels {
  Panels(BlockShape shape, bool largest) : layout(block_layout(shape)) {
    std::mt19937 generator(static_cast<uint32_t>(shape));
    bytes.resize(static_cast<size_t>(kPanels * kBlocks * layout.bytes()));
    for (uint8_t& byte : bytes) byte = largest ? 255 : static_cast<uint8_t>(generator());
    for (int64_t block = 0; block < kPanels * kBlocks; ++block) {
      if (largest && !layout.offsets) {  // scales have a sign: weights of even blocks have one, too
        uint8_t* const own = bytes.data() + block * layout.bytes();
        std::fill(own + layout.scales_at(), own + layout.tiles_at(), uint8_t{0x80});
        if (block % 2 == 0) std::fill(own + layout.tiles_at(), own + layout.bytes(), uint8_t{0});
      }
      for (int64_t i = 0; i < 2 * kPanelWidth; ++i) {
        const Float16 scale = to_float16(0.001f * static_cast<float>(1 + generator() % 1000));
        std::memcpy(bytes.data() + block * layout.bytes() + 2 * i, &scale, sizeof scale);
      }
    }
  }
  const uint8_t* block(int64_t panel, int64_t index) const {
    return bytes.data() + (panel * kBlocks + index) * layout.bytes();
  }
  int code(const uint8_t* block, int64_t input, int64_t column) const {
    const uint8_t* const nibbles = block + layout.tiles_at() + input / 32 * layout.tile_bytes();
    const uint8_t* const pairs = nibbles + 256 * layout.nibbles;
    const uint8_t* const singles = pairs + 128 * layout.pairs;
    const int64_t quad = input % 32 / 4;
    const int64_t at = 4 * column + input % 4;
    int code = 0;
    if (layout.nibbles != 0) code |= nibbles[quad / 2 * 64 + at] >> (quad % 2 * 4) & 15;
    if (layout.pairs != 0) code |= (pairs[quad / 4 * 64 + at] >> (quad % 4 * 2) & 3) << (4 * layout.nibbles);
    if (layout.singles != 0) {
      code |= (singles[at] >> quad & 1) << (4 * layout.nibbles + 2 * layout.pairs);
    }
    return code;
  }
  int scale(const uint8_t* block, int64_t group, int64_t column) const {
    const uint8_t byte = block[layout.scales_at() + group * kPanelWidth + column];
    return layout.offsets ? byte & layout.scale_bits() : static_cast<int8_t>(byte);
  }

  BlockLayout layout;
  std::vector<uint8_t> bytes;
};

/// The product of a row with a column, which kernels have to give bit for bit.
float reference(const Panels& panels, const TwoByteRow& row, int64_t panel, int64_t column) {
  const BlockLayout& layout = panels.layout;
  float sum = 0.0f;
  for (int64_t index = 0; index < kBlocks; ++index) {
    const uint8_t* const block = panels.block(panel, index);
    const auto* const scales = reinterpret_cast<const Float16*>(block);
    int64_t upper = 0;
    int64_t whole = 0;
    for (int64_t group = 0; group < layout.groups(); ++group) {
      int64_t of_upper = 0;
      int64_t of_whole = 0;
      for (int64_t input = group * layout.group; input < (group + 1) * layout.group; ++input) {
        const int weight = panels.code(block, input, column) - layout.bias;
        const int64_t at = index * kBlockInputs + input;
        of_upper += weight * row.upper[at];
        if (row.lower != nullptr) of_whole += weight * (256 * row.upper[at] + row.lower[at]);
      }
      upper += panels.scale(block, group, column) * of_upper;
      whole += panels.scale(block, group, column) * of_whole;
      if (layout.offsets) {
        const uint8_t byte = block[layout.offsets_at() + group * kPanelWidth + column];
        const float offset = static_cast<float>(byte) * to_float(scales[kPanelWidth + column]);
        const float* const sums = layout.group == 16 ? row.of_16 : row.of_32;
        sum = std::fma(offset, sums[index * layout.groups() + group], sum);
      }
    }
    const float value = row.lower == nullptr
                            ? static_cast<float>(upper) * 256.0f
                            : static_cast<float>(whole >> 8) * 256.0f + static_cast<float>(whole & 255);
    sum = std::fma(value * to_float(scales[column]), row.steps[index], sum);
  }
  return sum;
}

/// Activations: in one row all, in the others some are the largest of their block.
std::vector<float> activations() {
  std::mt19937 generator(7);
  std::vector<float> x;
  for (int64_t r = 0; r < kMostRows; ++r) {
    for (int64_t i = 0; i < kInputs; ++i) {
      const uint32_t draw = generator();
      const bool largest = r == 1 || draw % 16 == 0;
      const float sign = r % 2 == 1 || draw % 3 == 0 ? 1.0f : -1.0f;
      x.push_back(sign * (largest ? 1.0f : static_cast<float>(draw / 16 % 10000) * 1e-4f));
    }
  }
  return x;
}

class BlockKernels : public testing::TestWithParam<MachinePath> {
 protected:
  void expect_reference(BlockShape shape, bool largest, bool upper_alone) {
    const SelectedKernels selected(*GetParam().table);
    const Panels panels(shape, largest);
    ThreadTeam team(1);
    LinearWorkspace workspace;
    const Matrix<const float> x{x_.data(), kMostRows, kInputs, kInputs};
    const auto all = to_two_bytes(x, {.upper_alone = upper_alone}, workspace, team);
    for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 40, 130}) {
      std::vector<float> c(static_cast<size_t>(rows * (kColumns + 1)), -1.0f);
      kernels().block_product[shape]({.rows = all.data(),
                                      .row_count = rows,
                                      .row_stride = two_byte_stride(kInputs),
                                      .panels = panels.bytes.data(),
                                      .panel_count = kPanels,
                                      .blocks = kBlocks,
                                      .c = c.data(),
                                      .c_stride = kColumns + 1});
      int64_t wrong = 0;
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t column = 0; column < kColumns; ++column) {
          const float expected =
              reference(panels, all[static_cast<size_t>(r)], column / kPanelWidth, column % kPanelWidth);
          const float found = c[static_cast<size_t>(r * (kColumns + 1) + column)];
          wrong += std::bit_cast<uint32_t>(found) != std::bit_cast<uint32_t>(expected);
        }
        EXPECT_EQ(c[static_cast<size_t>(r * (kColumns + 1) + kColumns)], -1.0f);
      }
      EXPECT_EQ(wrong, 0) << "shape " << shape << ", rows " << rows;
    }
  }

 private:
  const std::vector<float> x_ = activations();
};

INSTANTIATE_TEST_SUITE_P(, BlockKernels, testing::ValuesIn(machine_paths()),
                         test::path_name<testing::TestParamInfo<MachinePath>>);

TEST_P(BlockKernels, RowsOfTwoBytesGiveTheValueOfTheExactIntegerOfEachBlock) {
  for (int shape = 0; shape < kBlockShapes; ++shape) {
    expect_reference(static_cast<BlockShape>(shape), false, false);
  }
}

TEST_P(BlockKernels, RowsOfOneByteGiveTheValueOfTheExactIntegerOfEachBlock) {
  for (int shape = 0; shape < kBlockShapes; ++shape) {
    expect_reference(static_cast<BlockShape>(shape), false, true);
  }
}

TEST_P(BlockKernels, TheLargestCodesAndScalesAreExact) {
  for (int shape = 0; shape < kBlockShapes; ++shape) {
    expect_reference(static_cast<BlockShape>(shape), true, false);
    expect_reference(static_cast<BlockShape>(shape), true, true);
  }
}

}  // namespace
}  // namespace verbatim
