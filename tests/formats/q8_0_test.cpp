#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "formats/pack_linear.h"
#include "formats/q8_0.h"
#include "formats/tile_codes.h"
#include "model/weights.h"
#include "support/machine_paths.h"
#include "support/packed.h"
#include "support/random.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"
#include "verbatim/error.h"

namespace verbatim {
namespace q8_0_test {
namespace {

constexpr int64_t kColumns = 40;
constexpr int64_t kInputs = 96;

std::vector<float> unpacked(const PackedMatrix& matrix, int64_t column) {
  std::vector<float> weights(static_cast<size_t>(matrix.k));
  operations(matrix.format).unpack_column(matrix, readings(matrix.format).front(), column, weights);
  return weights;
}

int8_t code_of(int64_t column, int64_t k) {
  return static_cast<int8_t>((column * 37 + k * 11) % 256 - 128);
}

Float16 scale_of(int64_t column, int64_t group) {
  return to_float16(0.001f * static_cast<float>(column % 7 + group - 3));
}

/// A weight in `q8_0` beside `f32`, with codes of every value and scales that no quantizer would choose.
LinearWeight coded_weight() {
  PackLinearOptions options;
  options.formats = {Format::kQ8_0, Format::kF32};
  options.codes = [](int64_t column, std::span<int8_t> codes, std::span<Float16> scales) {
    for (size_t k = 0; k < codes.size(); ++k) codes[k] = code_of(column, static_cast<int64_t>(k));
    for (size_t g = 0; g < scales.size(); ++g) scales[g] = scale_of(column, static_cast<int64_t>(g));
  };
  const auto rows = [](int64_t column, std::span<float> row) {
    for (size_t k = 0; k < row.size(); ++k) {
      const auto input = static_cast<int64_t>(k);
      row[k] = static_cast<float>(code_of(column, input)) * to_float(scale_of(column, input / 32));
    }
  };
  ThreadTeam team(2);
  return pack_linear(kColumns, kInputs, rows, options, team).weight;
}

TEST(Q8_0, KeepsTheCodesAndScalesThatItIsGiven) {
  const LinearWeight weight = coded_weight();
  const PackedMatrix& store = *weight.find(Format::kQ8_0);
  for (int64_t n = 0; n < kColumns; ++n) {
    EXPECT_EQ(unpacked(store, n), unpacked(*weight.find(Format::kF32), n)) << n;
  }
  EXPECT_EQ(8 * store.bytes(), round_up(kColumns, kPanelWidth) * kInputs * 17 / 2);
  EXPECT_EQ(weight.resolve(Reading::kFull), Reading::kQ8_0);
}

TEST(Q8_0, MultipliesCodesWithRoundedActivationsAndScalesTheSumOf32) {
  const LinearWeight weight = coded_weight();
  std::vector<float> x = test::random_floats(3 * kInputs, 3);
  std::vector<float> y(static_cast<size_t>(3 * weight.padded_columns()));
  LinearWorkspace workspace;
  ThreadTeam team(2);
  linear(weight, Reading::kFull, {x.data(), 3, kInputs}, {y.data(), 3, weight.padded_columns()}, workspace,
         team);
  const bool in_integers = kernels().halves_product != nullptr;
  for (int64_t r = 0; r < 3; ++r) {
    const std::span<const float> row(x.data() + r * kInputs, static_cast<size_t>(kInputs));
    const float largest = std::fabs(*std::ranges::max_element(row, {}, [](float v) { return std::fabs(v); }));
    const double half_a_step = in_integers ? largest / 64000.0 : 0.0;
    for (int64_t n = 0; n < kColumns; ++n) {
      double expected = 0.0;
      double bound = 1e-30;
      for (int64_t k = 0; k < kInputs; ++k) {
        const float own = row[static_cast<size_t>(k)];
        const double weight_here = code_of(n, k) * static_cast<double>(to_float(scale_of(n, k / 32)));
        const double term = static_cast<double>(in_integers ? own : to_float(to_bfloat16(own))) * weight_here;
        expected += term;
        bound += 1e-5 * std::fabs(term) + half_a_step * std::fabs(weight_here);
      }
      EXPECT_NEAR(y[static_cast<size_t>(r * weight.padded_columns() + n)], expected, bound);
    }
  }
}

TEST(Q8_0, DraftsWithTheMiddleOfTheCodesThatShareAnUpperHalf) {
  const LinearWeight weight = coded_weight();
  const PackedMatrix& store = *weight.find(Format::kQ8_0);
  for (int64_t n = 0; n < kColumns; ++n) {
    const std::vector<float> column = test::unpacked_column(store, Reading::kQ8_0Draft, n);
    for (int64_t k = 0; k < kInputs; ++k) {
      const float middle = 16.0f * std::floor(static_cast<float>(code_of(n, k)) / 16.0f) + 7.5f;
      ASSERT_EQ(column[static_cast<size_t>(k)], middle * to_float(scale_of(n, k / 32))) << n << ' ' << k;
    }
  }
  const auto bits_per_weight = [&](Reading reading) {
    return 8.0 * static_cast<double>(operations(Format::kQ8_0).bytes_read(store, reading)) /
           static_cast<double>(weight.padded_columns() * kInputs);
  };
  EXPECT_EQ(bits_per_weight(Reading::kQ8_0), 8.5);
  EXPECT_EQ(bits_per_weight(Reading::kQ8_0Draft), 4.5);
}

class Q8_0Kernels : public testing::TestWithParam<test::MachinePath> {};
INSTANTIATE_TEST_SUITE_P(, Q8_0Kernels, testing::ValuesIn(test::machine_paths()),
                         [](const auto& info) { return test::path_name(info); });

constexpr int64_t kManyColumns = 7 * 16;
constexpr int64_t kManyInputs = 9 * 128 + 96;
constexpr int64_t kManyRows = 131;

/// The product in integers by its definition: for each tile of 32 inputs, its sum of products becomes a
/// float, is multiplied with the scale, and with the step in a fused multiply-add with what came before.
std::vector<float> product_in_integers(const PackedMatrix& store, const std::vector<float>& x, int64_t rows) {
  const auto* const upper = store.plane(0).as<const uint8_t>();
  const auto* const lower = store.plane(2).as<const uint8_t>();
  std::vector<float> y(static_cast<size_t>(rows * store.columns));
  for (int64_t r = 0; r < rows; ++r) {
    const float* const row = x.data() + r * store.k;
    for (int64_t n = 0; n < store.columns; ++n) {
      float sum = 0.0f;
      for (int64_t begin = 0; begin < store.k; begin += 32) {
        const int64_t block = begin / 256 * 256;
        float largest = 0.0f;
        for (int64_t k = block; k < std::min(block + 256, store.k); ++k)
          largest = std::max(largest, std::fabs(row[k]));
        int64_t dot = 0;
        for (int64_t k = begin; k < begin + 32; ++k) {
          const int code = 16 * (get_code(upper, store, n, k) - 8) + get_code(lower, store, n, k);
          dot += code * std::lround(std::nearbyint(row[k] * (32000.0f / largest)));
        }
        const float scaled = static_cast<float>(dot) *
                             to_float(store.plane(1).as<Float16>()[tile_scale_index(store, n, begin)]);
        sum = std::fma(scaled, largest / 32000.0f, sum);
      }
      y[static_cast<size_t>(r * store.columns + n)] = sum;
    }
  }
  return y;
}

/// Where products are in BF16, those of `int8`, which has its codes whole, are the expectation.
TEST_P(Q8_0Kernels, MultiplyBothHalves) {
  const test::SelectedKernels selected(*GetParam().table);
  const LinearWeight weight =
      test::pack(kManyColumns, kManyInputs, test::random_floats(kManyColumns * kManyInputs, 1, 0.05f),
                 {Format::kQ8_0, Format::kInt8});
  const bool in_integers = GetParam().table->halves_product != nullptr;
  const PackedMatrix& store = *weight.find(Format::kQ8_0);
  // Codes that packing never makes, but a file may hold: -128, and halves of every kind.
  for (const int plane : {0, 2}) {
    auto* const halves = store.plane(plane).as<uint8_t>();
    for (int64_t i = 0; i < kManyColumns * kManyInputs / 2; i += 37)
      halves[i] = static_cast<uint8_t>(i % 2 == 0 ? 0 : i);
  }
  const PackedMatrix& whole = *weight.find(Format::kInt8);
  for (int64_t n = 0; n < kManyColumns; ++n) {
    for (int64_t k = 0; k < kManyInputs; ++k) {
      const int64_t place = n / 16 * whole.k * 16 + k / 4 * 64 + n % 16 * 4 + kQuadOrder[k % 4];
      whole.plane(0).as<int8_t>()[place] =
          static_cast<int8_t>(16 * (get_code(store.plane(0).as<uint8_t>(), store, n, k) - 8) +
                              get_code(store.plane(2).as<uint8_t>(), store, n, k));
    }
  }
  const std::vector<float> x = test::random_inputs(kManyRows, kManyInputs, 2);
  LinearWorkspace workspace;
  for (const int members : {1, 2}) {
    ThreadTeam team(members);
    for (const int64_t rows : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33, 80, 97, 131}) {
      EXPECT_EQ(test::multiply(weight, Reading::kQ8_0, x.data(), rows, team, workspace),
                in_integers ? product_in_integers(store, x, rows)
                            : test::multiply(weight, Reading::kInt8W8A16, x.data(), rows, team, workspace))
          << rows << " rows, " << members << " threads";
    }
  }
}

TEST_P(Q8_0Kernels, ANumberThatIsNotFiniteMakesItsRowNotFinite) {
  const test::SelectedKernels selected(*GetParam().table);
  constexpr int64_t kK = 320;  // a block of 256 and a part of one
  const LinearWeight weight = test::pack(16, kK, test::random_floats(16 * kK, 1, 0.05f), {Format::kQ8_0});
  LinearWorkspace workspace;
  ThreadTeam team(1);
  for (const float value : {INFINITY, -INFINITY, NAN}) {
    for (const size_t place : {5, 300}) {
      std::vector<float> x = test::random_inputs(2, kK, 2);
      x[place] = value;
      const std::vector<float> y = test::multiply(weight, Reading::kQ8_0, x.data(), 2, team, workspace);
      for (size_t n = 0; n < 16; ++n) {
        EXPECT_FALSE(std::isfinite(y[n])) << n;
        EXPECT_TRUE(std::isfinite(y[16 + n])) << n;
      }
    }
  }
}

TEST_P(Q8_0Kernels, DraftWithTheSameBitsOnEveryInstructionSet) {
  constexpr int64_t kK = 9 * 128 + 96;
  const LinearWeight weight =
      test::pack(7 * 16, kK, test::random_floats(7 * 16 * kK, 3, 0.05f), {Format::kQ8_0});
  const std::vector<float> x = test::random_inputs(33, kK, 4);
  LinearWorkspace workspace;
  ThreadTeam team(2);
  for (const int64_t rows : {1, 2, 5, 6, 7, 8, 33}) {
    const auto product = [&](const KernelTable& table) {
      const test::SelectedKernels selected(table);
      return test::multiply(weight, Reading::kQ8_0Draft, x.data(), rows, team, workspace);
    };
    EXPECT_EQ(product(*GetParam().table), product(*test::machine_paths().front().table)) << rows;
  }
}

TEST(Q8_0, RefusesWholeCodesAsEarlierVersionsPackedThem) {
  PackedMatrix whole = make_matrix(Format::kQ8_0, 16, 32);
  whole.planes.emplace_back(size_t{512});
  whole.planes.emplace_back(size_t{32});
  try {
    operations(Format::kQ8_0).validate(whole);
    FAIL() << "was not refused";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("pack the model again"), std::string::npos) << error.what();
  }
}

TEST(Q8_0, HasUpperHalvesThatTellNothingWhereCodesAreAsSmallAsThoseOfQ4_0) {
  for (const auto& [largest, tell] : {std::pair{127, true}, {8, false}, {16, false}}) {
    PanelSource source;
    source.column_count = 16;
    std::vector<float> weights(16 * 32);
    std::vector<int8_t> codes(weights.size());
    const std::vector<Float16> scales(16, to_float16(1.0f));
    for (size_t i = 0; i < codes.size(); ++i)
      codes[i] = static_cast<int8_t>(i % 2 == 0 ? largest - 1 : -largest);
    source.weights = weights;
    source.codes = codes;
    source.scales = scales;
    const FormatOperations& q8_0 = operations(Format::kQ8_0);
    PackedMatrix matrix = q8_0.allocate(16, 32, Element::kBf16, {});
    PanelTail tail;
    q8_0.pack_panel(matrix, source, {}, tail);
    EXPECT_EQ(upper_halves_tell(matrix), tell) << largest;
  }
}

TEST(Q8_0, HasUpperHalvesThatTellWhereAllWeightsAreZero) {
  const LinearWeight weight = test::pack(16, 32, std::vector<float>(16 * 32), {Format::kQ8_0});
  EXPECT_TRUE(upper_halves_tell(weight.stores.front()));
  const std::vector<float> drafted = test::unpacked_column(weight.stores.front(), Reading::kQ8_0Draft, 3);
  EXPECT_EQ(drafted, std::vector<float>(32));
}

TEST(Q8_0, IsTheFormatOfMatricesInQ8_0AndOfNoOthers) {
  const test::TemporaryFolder folder;
  ThreadTeam team(2);
  std::vector<std::string> warnings;
  for (const DType dtype : {DType::kQ8_0, DType::kF32}) {
    test::TinyModelOptions model;
    model.dtype = dtype;
    const auto path = folder.path() / (dtype_name(dtype) + ".gguf");
    test::write_tiny_gguf(path, model);
    const Checkpoint checkpoint = open_checkpoint(path);
    const MatrixSpec spec = matrix_specs(checkpoint.config).front();
    LoadOptions options;
    options.formats = {std::nullopt};
    const LinearWeight own = pack_matrix(checkpoint, spec, options, team, warnings);
    EXPECT_EQ(own.stores.front().format, dtype == DType::kQ8_0 ? Format::kQ8_0 : Format::kF32);
    options.formats = {Format::kF32};
    const LinearWeight wide = pack_matrix(checkpoint, spec, options, team, warnings);
    EXPECT_EQ(wide.stores.size(), 1u);
    for (int64_t n = 0; n < own.columns; ++n) {
      ASSERT_EQ(unpacked(own.stores.front(), n), unpacked(wide.stores.front(), n)) << n;
    }
    options.formats = {Format::kQ8_0};
    if (dtype == DType::kQ8_0) {
      EXPECT_NO_THROW(pack_matrix(checkpoint, spec, options, team, warnings));
    } else {
      EXPECT_THROW(pack_matrix(checkpoint, spec, options, team, warnings), Error);
    }
  }
}

}  // namespace
}  // namespace q8_0_test
}  // namespace verbatim
