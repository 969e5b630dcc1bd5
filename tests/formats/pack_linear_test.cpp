#include "formats/pack_linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "model/weights.h"
#include "support/packed.h"
#include "support/random.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

ErrorKind kind_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::kMachine;
}

TEST(PackLinear, NanAndInfinityAreNoticed) {
  ThreadTeam team(2);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    for (const Format format : all_formats()) {
      PackLinearOptions options;
      options.formats = {format};
      const auto rows = [&](int64_t column, std::span<float> row) {
        std::fill(row.begin(), row.end(), 1.0f);
        if (column == 20) row[5] = bad;
      };
      EXPECT_FALSE(pack_linear(40, 64, rows, options, team).finite) << format_name(format);
      const auto good = [](int64_t, std::span<float> row) { std::fill(row.begin(), row.end(), 1.0f); };
      EXPECT_TRUE(pack_linear(40, 64, good, options, team).finite) << format_name(format);
    }
  }
}

TEST(PackLinear, AnyNumberOfThreadsGivesTheSameBytes) {
  constexpr int64_t kColumns = 105;
  constexpr int64_t kInputs = 300;
  const std::vector<float> weights = test::random_floats(kColumns * kInputs, 1, 0.05f);
  std::vector<float> sensitivities = test::random_floats(kColumns * kInputs, 2);
  for (float& s : sensitivities) s = s * s;
  for (const bool sensitive : {false, true}) {
    for (const Element element : {Element::kBf16, Element::kF16}) {
      PackLinearOptions options;
      options.element = element;
      for (const Format format : all_formats()) {
        if (format != Format::kMxbf16 || element == Element::kBf16) options.formats.push_back(format);
      }
      if (sensitive) options.sensitivities = test::rows_of(sensitivities, kInputs);
      std::vector<LinearWeight> packed;
      for (const int threads : {1, 2, 3}) {
        ThreadTeam team(threads);
        packed.push_back(
            std::move(pack_linear(kColumns, kInputs, test::rows_of(weights, kInputs), options, team).weight));
      }
      ASSERT_EQ(packed[0].stores.size(), options.formats.size());
      for (size_t i = 0; i < options.formats.size(); ++i) {
        EXPECT_EQ(packed[0].stores[i].format, options.formats[i]);
        for (const size_t other : {1u, 2u}) {
          EXPECT_TRUE(test::same_bytes(packed[0].stores[i], packed[other].stores[i]))
              << format_name(options.formats[i]) << " by " << other + 1 << " threads";
        }
      }
    }
  }
}

// What is packed together must be what is packed alone: the formats share nothing but the source.
TEST(PackLinear, FormatsSideBySideHoldTheSameBytesAsAlone) {
  const std::vector<float> weights = test::random_floats(40 * 160, 3, 0.05f);
  const LinearWeight together = test::pack(40, 160, weights, all_formats());
  for (const Format format : all_formats()) {
    ASSERT_NE(together.find(format), nullptr);
    EXPECT_TRUE(test::same_bytes(*together.find(format), test::pack_store(40, 160, weights, format)))
        << format_name(format);
  }
}

TEST(PackLinear, Mxbf16OfF16WeightsIsBadInput) {
  const std::vector<float> weights(16 * 32, 1.0f);
  EXPECT_EQ(kind_of([&] { test::pack(16, 32, weights, {Format::kMxbf16}, Element::kF16); }),
            ErrorKind::kBadInput);
}

TEST(PackMatrix, RefusesAFormatThatCannotHoldTheCheckpointWithoutLoss) {
  const test::TemporaryFolder folder;
  ThreadTeam team(2);
  struct Case {
    DType dtype;
    Format format;
    bool fits;
  };
  for (const Case c : {Case{DType::kBF16, Format::kMxbf16, true}, Case{DType::kF16, Format::kMxbf16, false},
                       Case{DType::kF32, Format::kMxbf16, false}, Case{DType::kBF16, Format::kBsfp, true},
                       Case{DType::kF16, Format::kBsfp, true}, Case{DType::kF32, Format::kBsfp, false},
                       Case{DType::kF32, Format::kInt4, true}}) {
    const auto path = folder.path() / dtype_name(c.dtype);
    test::TinyModelOptions model;
    model.dtype = c.dtype;
    test::write_tiny_llama(path, model);
    const Checkpoint checkpoint = open_checkpoint(path);
    LoadOptions options;
    options.formats = {c.format};
    std::vector<std::string> warnings;
    const MatrixSpec spec = matrix_specs(checkpoint.config).front();
    if (c.fits) {
      const LinearWeight weight = pack_matrix(checkpoint, spec, options, team, warnings);
      EXPECT_EQ(weight.stores.front().format, c.format);
      if (c.format == Format::kBsfp) {
        EXPECT_EQ(weight.stores.front().element == Element::kF16, c.dtype == DType::kF16);
      }
    } else {
      EXPECT_EQ(kind_of([&] { pack_matrix(checkpoint, spec, options, team, warnings); }),
                ErrorKind::kBadInput)
          << format_name(c.format);
    }
  }
}

TEST(PackMatrix, NamesTensorsThatHoldNan) {
  const test::TemporaryFolder folder;
  test::TinyModelOptions model;
  model.nan_weight = true;
  test::write_tiny_llama(folder.path(), model);
  const Checkpoint checkpoint = open_checkpoint(folder.path());
  ThreadTeam team(2);
  for (const Format format : all_formats()) {
    if (format == Format::kQ8_0 || format == Format::kKQuants) continue;  // which refuse this model
    LoadOptions options;
    options.formats = {format};
    std::vector<std::string> warnings;
    pack_weights(checkpoint, options, team, warnings);
    ASSERT_EQ(warnings.size(), 1u) << format_name(format);
    EXPECT_NE(warnings[0].find("model.layers.0.mlp.down_proj.weight"), std::string::npos) << warnings[0];
  }
}

TEST(PackLinear, SqueezeOfMoreInputsThanItCanNameIsBadInput) {
  const std::vector<float> weights(65537, 1.0f);
  for (const Format format : {Format::kSqueeze3, Format::kSqueeze4}) {
    EXPECT_EQ(kind_of([&] { test::pack(1, 65537, weights, {format}); }), ErrorKind::kBadInput);
  }
}

TEST(PackLinear, NoFormatAtAllIsAUsageError) {
  const std::vector<float> weights(16 * 32, 1.0f);
  EXPECT_EQ(kind_of([&] { test::pack(16, 32, weights, {}); }), ErrorKind::kUsage);
}

TEST(LinearWeights, FullIsTheExactReadingThatIsThere) {
  const std::vector<float> weights = test::random_floats(16 * 32, 4);
  struct Case {
    std::vector<Format> formats;
    Reading full;
  };
  for (const Case& c :
       {Case{{Format::kBf16}, Reading::kBf16}, Case{{Format::kF16}, Reading::kF16},
        Case{{Format::kF32}, Reading::kF32}, Case{{Format::kBsfp}, Reading::kBsfpFull},
        Case{{Format::kMxbf16}, Reading::kMxbf16Full}, Case{{Format::kMxfp4, Format::kBf16}, Reading::kBf16},
        Case{{Format::kInt4, Format::kMxbf16, Format::kInt8}, Reading::kMxbf16Full},
        Case{{Format::kInt8}, Reading::kInt8W8A16}, Case{{Format::kInt4}, Reading::kInt4W4A16},
        Case{{Format::kInt4Asymmetric}, Reading::kInt4AsymmetricW4A16},
        Case{{Format::kMxfp4}, Reading::kMxfp4W4A16}, Case{{Format::kSqueeze3}, Reading::kSqueeze3},
        Case{{Format::kSqueeze4}, Reading::kSqueeze4}}) {
    const LinearWeight weight = test::pack(16, 32, weights, c.formats);
    EXPECT_EQ(weight.resolve(Reading::kFull), c.full) << reading_name(c.full);
    EXPECT_EQ(&weight.store(Reading::kFull), weight.find(reading_format(c.full)));
  }
}

TEST(LinearWeights, AReadingIsItselfWhereItsFormatIsThereAndElseAUsageError) {
  const std::vector<float> weights = test::random_floats(16 * 32, 5);
  std::vector<float> x(32);
  std::vector<float> y(16);
  LinearWorkspace workspace;
  ThreadTeam team(1);
  for (const Format there : all_formats()) {
    const LinearWeight weight = test::pack(16, 32, weights, {there});
    for (const Format format : all_formats()) {
      for (const Reading reading : readings(format)) {
        if (format == there) {
          EXPECT_EQ(weight.resolve(reading), reading);
          EXPECT_EQ(&weight.store(reading), &weight.stores.front());
          continue;
        }
        EXPECT_EQ(weight.find(format), nullptr);
        EXPECT_EQ(kind_of([&] { weight.resolve(reading); }), ErrorKind::kUsage);
        EXPECT_EQ(kind_of([&] { weight.store(reading); }), ErrorKind::kUsage);
        EXPECT_EQ(kind_of([&] {
                    linear(weight, reading, {x.data(), 1, 32}, {y.data(), 1, 16}, workspace, team);
                  }),
                  ErrorKind::kUsage);
      }
    }
  }
}

}  // namespace
}  // namespace verbatim
