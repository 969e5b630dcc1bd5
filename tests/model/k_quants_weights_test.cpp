#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "formats/k_quants.h"
#include "model/weights.h"
#include "support/k_quant_blocks.h"
#include "support/machine_paths.h"
#include "support/packed.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

constexpr int64_t kInputs = 512;

/// A checkpoint of one layer whose matrix of queries, keys and values has random blocks of three types, 48
/// columns of each.
struct RandomBlocks {
  explicit RandomBlocks(std::array<DType, 3> types, bool extreme = false, int64_t rows = 48) {
    checkpoint.config.head_dim = static_cast<int32_t>(rows);
    checkpoint.config.heads = 1;
    checkpoint.config.kv_heads = 1;
    spec.name = "layers.0.qkv";
    spec.k = kInputs;
    for (size_t i = 0; i < 3; ++i) {
      const std::string name = "part." + std::to_string(i);
      bytes[i] = test::random_k_quants(types[i], rows * kInputs / 256, static_cast<uint32_t>(i + 1), extreme);
      checkpoint.tensors[name] = {types[i], {rows, kInputs}, std::as_bytes(std::span(bytes[i]))};
      spec.parts.push_back({name, rows, false});
    }
  }
  LinearWeight pack(std::vector<std::optional<Format>> formats) {
    ThreadTeam team(2);
    std::vector<std::string> not_finite;
    LoadOptions options;
    options.formats = std::move(formats);
    return pack_matrix(checkpoint, spec, options, team, not_finite);
  }

  std::array<std::string, 3> bytes;
  Checkpoint checkpoint;
  MatrixSpec spec;
};

constexpr std::array<DType, 3> kMixtures[] = {{DType::kQ4_K, DType::kQ4_K, DType::kQ6_K},
                                              {DType::kQ5_K, DType::kQ2_K, DType::kQ3_K},
                                              {DType::kQ6_K, DType::kQ6_K, DType::kQ6_K},
                                              {DType::kQ3_K, DType::kQ5_K, DType::kQ2_K}};

/// Blocks of one type whose codes, scales and offsets are the largest that there are.
RandomBlocks with_largest_codes(DType type) {
  RandomBlocks source({type, type, type});
  for (std::string& bytes : source.bytes) {
    const size_t size = dtype_bytes(type, 256);
    std::fill(bytes.begin(), bytes.end(), '\xff');
    if (type == DType::kQ6_K) {
      for (size_t b = 0; b < bytes.size(); b += size) {
        std::fill_n(bytes.begin() + static_cast<int64_t>(b), 192, b % (2 * size) == 0 ? '\xff' : '\0');
        std::fill_n(bytes.begin() + static_cast<int64_t>(b) + 192, 16, '\x80');
      }
    }
    for (size_t b = 0; b < bytes.size(); b += size) {
      for (const size_t place : test::places_of_scales(type)) {
        bytes[b + place] = 0;
        bytes[b + place + 1] = 0x3c;  // 1.0
      }
    }
  }
  return source;
}

TEST(KQuantsWeights, AreExactlyThoseOfTheFileForRandomAndExtremeBlocks) {
  for (const auto& types : kMixtures) {
    for (const bool extreme : {false, true}) {
      RandomBlocks source(types, extreme);
      const LinearWeight weight = source.pack({std::nullopt, Format::kF32});
      ASSERT_EQ(weight.stores.front().format, Format::kKQuants);
      int64_t finite = 0;
      for (int64_t n = 0; n < weight.columns; ++n) {
        const std::vector<float> own = test::unpacked_column(weight.stores[0], Reading::kKQuantsA16, n);
        const std::vector<float> wide = test::unpacked_column(weight.stores[1], Reading::kF32, n);
        for (size_t k = 0; k < own.size(); ++k) {
          if (std::isnan(own[k]) && std::isnan(wide[k])) continue;
          ASSERT_EQ(std::memcmp(&own[k], &wide[k], sizeof(float)), 0) << n << ", " << k << ": " << own[k];
          ++finite;
        }
      }
      EXPECT_GT(finite, weight.columns * kInputs * 3 / 4);
    }
  }
}

TEST(KQuantsWeights, TakeTheBitsOfTheirTypes) {
  const std::pair<DType, double> cases[] = {{DType::kQ2_K, 3.125},
                                            {DType::kQ3_K, 3.625},
                                            {DType::kQ4_K, 4.625},
                                            {DType::kQ5_K, 5.625},
                                            {DType::kQ6_K, 6.625}};
  for (const auto& [type, bits] : cases) {
    const LinearWeight weight = RandomBlocks({type, type, type}).pack({std::nullopt});
    const PackedMatrix& store = weight.stores.front();
    EXPECT_EQ(8.0 * static_cast<double>(store.plane(1).size()) / static_cast<double>(store.columns * store.k),
              bits)
        << dtype_name(type);
    EXPECT_EQ(operations(Format::kKQuants).bytes_read(store, Reading::kKQuantsA8), store.bytes());
  }
}

TEST(KQuantsWeights, AreWidenedWhereAPanelWouldHaveTwoTypes) {
  const auto& mixed = kMixtures[1];
  EXPECT_EQ(RandomBlocks(mixed, false, 40).pack({std::nullopt}).stores.front().format, Format::kF32);
  const std::array<DType, 3> same = {DType::kQ4_K, DType::kQ4_K, DType::kQ4_K};
  EXPECT_EQ(RandomBlocks(same, false, 40).pack({std::nullopt}).stores.front().format, Format::kKQuants);
}

TEST(KQuantsWeights, AreTheFormatOfNoOtherTypes) {
  const test::TemporaryFolder folder;
  test::write_tiny_gguf(folder.path() / "q8_0.gguf", {.dtype = DType::kQ8_0});
  const Checkpoint checkpoint = open_checkpoint(folder.path() / "q8_0.gguf");
  ThreadTeam team(1);
  std::vector<std::string> not_finite;
  LoadOptions options;
  options.formats = {Format::kKQuants};
  try {
    pack_matrix(checkpoint, matrix_specs(checkpoint.config).front(), options, team, not_finite);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadInput);
    EXPECT_NE(std::string(error.what()).find("q8_0"), std::string::npos) << error.what();
  }
}

class KQuantsProduct : public testing::TestWithParam<test::MachinePath> {
 protected:
  std::vector<float> product(const KernelTable& table, const LinearWeight& weight, Reading reading,
                             const std::vector<float>& x, int64_t rows) {
    const test::SelectedKernels selected(table);
    return test::multiply(weight, reading, x.data(), rows, team_, workspace_);
  }
  ThreadTeam team_{2};
  LinearWorkspace workspace_;
};
INSTANTIATE_TEST_SUITE_P(, KQuantsProduct, testing::ValuesIn(test::machine_paths()),
                         test::path_name<testing::TestParamInfo<test::MachinePath>>);

TEST_P(KQuantsProduct, HasTheBitsOfTheScalarReferenceOnEveryInstructionSet) {
  for (const auto& types : kMixtures) {
    const LinearWeight weight = RandomBlocks(types).pack({std::nullopt});
    std::vector<float> x = test::random_inputs(40, kInputs, 5);
    // Blocks of zeros, of one large number among small ones, and of the largest magnitudes of both signs.
    std::fill_n(x.begin(), 256, 0.0f);
    x[kInputs + 7] = 1e4f;
    for (size_t i = 0; i < 256; ++i) x[2 * kInputs + i] = i % 3 == 0 ? -1.0f : 1.0f;
    for (const Reading reading : readings(Format::kKQuants)) {
      const std::vector<float> expected =
          product(*test::machine_paths().front().table, weight, reading, x, 40);
      for (const int64_t rows : {1, 2, 3, 5, 8, 17, 33, 40}) {
        const std::vector<float> actual = product(*GetParam().table, weight, reading, x, rows);
        ASSERT_EQ(std::memcmp(actual.data(), expected.data(), actual.size() * sizeof(float)), 0)
            << reading_name(reading) << ", " << rows << " rows";
      }
    }
  }
}

// The largest codes, scales and activations that there can be, all of one sign: no sum of integers overflows.
TEST_P(KQuantsProduct, HoldsTheLargestSums) {
  for (const DType type : test::kKQuantTypes) {
    const LinearWeight weight = with_largest_codes(type).pack({std::nullopt});
    for (const float value : {1.0f, -1.0f}) {
      const std::vector<float> x(static_cast<size_t>(6 * kInputs), value);
      const std::vector<float> y = product(*GetParam().table, weight, Reading::kKQuantsA16, x, 6);
      const std::vector<float> column = test::unpacked_column(weight.stores.front(), Reading::kKQuantsA16, 0);
      double sum = 0.0;
      double size = 0.0;
      for (const float w : column) {
        sum += static_cast<double>(w) * value;
        size += std::fabs(static_cast<double>(w)) + 4096.0;
      }
      for (const float result : y) ASSERT_NEAR(result, sum, 1e-6 * size) << dtype_name(type);
    }
  }
}

// Tiles begin at nine rows. The lower bytes are the largest as well, which one activation of another size in
// each block brings about: of 32,000 steps, where the others are of 125 · 256 - 128.
TEST_P(KQuantsProduct, HoldsTheLargestSumsOfBothBytesInEveryNumberOfRows) {
  constexpr int64_t kRows = 33;
  for (const DType type : test::kKQuantTypes) {
    const LinearWeight weight = with_largest_codes(type).pack({std::nullopt});
    for (const float sign : {1.0f, -1.0f}) {
      std::vector<float> x(static_cast<size_t>(kRows * kInputs), sign * 31872.0f / 32000.0f);
      for (size_t i = 0; i < x.size(); i += 256) x[i + i / 256 % 256] = sign;
      for (const Reading reading : readings(Format::kKQuants)) {
        const std::vector<float> expected =
            product(*test::machine_paths().front().table, weight, reading, x, kRows);
        for (const int64_t rows : {1, 8, 9, 33}) {
          const std::vector<float> actual = product(*GetParam().table, weight, reading, x, rows);
          ASSERT_EQ(std::memcmp(actual.data(), expected.data(), actual.size() * sizeof(float)), 0)
              << dtype_name(type) << ", " << reading_name(reading) << ", " << rows << " rows";
        }
      }
    }
  }
}

// Codes cannot hold such a number, and a row that had one would look like any other.
TEST_P(KQuantsProduct, IsNotANumberInARowWithANumberThatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr int64_t kRows = 33;
  for (const auto& types : kMixtures) {
    const LinearWeight weight = RandomBlocks(types).pack({std::nullopt});
    const std::vector<float> sound = test::random_inputs(kRows, kInputs, 7);
    for (const Reading reading : readings(Format::kKQuants)) {
      const std::vector<float> expected = product(*GetParam().table, weight, reading, sound, kRows);
      for (const float value : {nan, infinity, -infinity}) {
        for (const int64_t rows : {1, 2, 8, 9, 33}) {
          const int64_t spoiled = rows / 2;
          for (const int64_t input : {int64_t{0}, int64_t{203}, kInputs - 1}) {
            std::vector<float> x = sound;
            x[static_cast<size_t>(spoiled * kInputs + input)] = value;
            const std::vector<float> actual = product(*GetParam().table, weight, reading, x, rows);
            const auto width = static_cast<int64_t>(actual.size()) / rows;
            for (int64_t r = 0; r < rows; ++r) {
              const float* const row = actual.data() + r * width;
              if (r == spoiled) {
                ASSERT_TRUE(std::all_of(row, row + width, [](float y) { return std::isnan(y); }))
                    << reading_name(reading) << ", " << value << ", " << rows << " rows";
              } else {
                ASSERT_EQ(
                    std::memcmp(row, expected.data() + r * width, sizeof(float) * static_cast<size_t>(width)),
                    0)
                    << reading_name(reading) << ", " << value << ", row " << r << " of " << rows;
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace verbatim
