#include <gtest/gtest.h>

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "checkpoint/checkpoint.h"
#include "model/weights.h"
#include "support/machine_paths.h"
#include "support/packed.h"
#include "support/random.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using test::machine_paths;
using test::MachinePath;

// `bsfp` and `mxbf16` are other ways to lay down the very weights: their bits, and the bits of every product,
// are those of `bf16` (or of `f16`).

struct Source {
  std::string name;
  Element element;
  int64_t columns;
  int64_t k;
  std::vector<float> weights;
};

float from_bits(Element element, uint32_t bits) {
  const auto word = static_cast<uint16_t>(bits);
  return element == Element::kBf16 ? to_float(BFloat16{word}) : to_float(Float16{word});
}

bool is_finite(Element element, uint32_t bits) {
  const uint32_t exponents = element == Element::kBf16 ? 0x7f80 : 0x7c00;
  return (bits & exponents) != exponents;
}

/// Weights whose bits draw() makes up, drawn again until they are finite unless `all` are wanted.
Source make(const std::string& name, Element element, int64_t columns, int64_t k,
            const std::function<uint32_t(std::mt19937&, int64_t)>& draw, bool all = false) {
  Source source{name, element, columns, k, {}};
  std::mt19937 generator(7);
  for (int64_t i = 0; i < columns * k; ++i) {
    uint32_t bits = draw(generator, i) & 0xffff;
    while (!all && !is_finite(element, bits)) bits = draw(generator, i) & 0xffff;
    source.weights.push_back(from_bits(element, bits));
  }
  return source;
}

/// Patterns of one group of 32, about one exponent, so that every level of the draft and the weights on the
/// borders between levels occur.
uint32_t around(uint32_t group, int mantissa_bits, uint32_t exponents, uint32_t depth,
                std::mt19937& generator) {
  const uint32_t top = 1 + group * 7919 % (exponents - 2);
  const uint32_t low = top > depth ? top - depth : 0;
  const uint32_t first = low << mantissa_bits;
  const uint32_t end = (top + 1) << mantissa_bits;
  return (first + static_cast<uint32_t>(generator()) % (end - first)) |
         (static_cast<uint32_t>(generator()) & 0x8000u);
}

std::vector<Source> sources() {
  constexpr Element kBf16 = Element::kBf16;
  constexpr Element kF16 = Element::kF16;
  std::vector<Source> list;
  for (const Element element : {kBf16, kF16}) {
    const std::string type = element == kBf16 ? "BF16" : "F16";
    const int mantissa = element == kBf16 ? 7 : 10;
    const uint32_t exponents = element == kBf16 ? 256 : 32;
    list.push_back(make("any finite " + type, element, 40, 288,
                        [](std::mt19937& g, int64_t) { return static_cast<uint32_t>(g()); }));
    list.push_back(make(
        "any " + type, element, 40, 288, [](std::mt19937& g, int64_t) { return static_cast<uint32_t>(g()); },
        true));
    list.push_back(make(
        "every " + type + " once", element, 256, 256,
        [](std::mt19937&, int64_t i) { return static_cast<uint32_t>(i) * 40503u; }, true));
    list.push_back(make(
        "neighbours in " + type, element, 256, 256,
        [](std::mt19937&, int64_t i) { return static_cast<uint32_t>(i); }, true));
    list.push_back(
        make("groups around every exponent of " + type, element, 64, 512, [&](std::mt19937& g, int64_t i) {
          return around(static_cast<uint32_t>(i / 32), mantissa, exponents, 10, g);
        }));
    list.push_back(make("subnormal " + type, element, 20, 100, [&](std::mt19937& g, int64_t) {
      return static_cast<uint32_t>(g()) & (0x8000u | ((1u << mantissa) - 1));
    }));
    list.push_back(make("+0 in " + type, element, 20, 100, [](std::mt19937&, int64_t) { return 0u; }));
    list.push_back(make("-0 in " + type, element, 20, 100, [](std::mt19937&, int64_t) { return 0x8000u; }));
    list.push_back(make("+0 and -0 in " + type, element, 20, 100,
                        [](std::mt19937& g, int64_t) { return static_cast<uint32_t>(g()) & 0x8000u; }));
    list.push_back(make("one number among zeros in " + type, element, 20, 100,
                        [](std::mt19937&, int64_t i) { return i == 777 ? 0x3c12u : 0u; }));
    Source trained{"normally distributed " + type, element, 33, 608, test::random_floats(33 * 608, 8, 0.03f)};
    for (float& w : trained.weights) {
      w = element == kBf16 ? to_float(to_bfloat16(w)) : to_float(to_float16(w));
    }
    list.push_back(trained);
    Source large = trained;
    large.name = "above 2 in " + type;
    for (float& w : large.weights) w *= 4096.0f;
    list.push_back(std::move(large));
    // Whatever power of two the largest weight is near, even or odd.
    for (const float largest : {1.5f, 2.5f, 5.0f, 10.0f}) {
      Source shifted = trained;
      shifted.name = fmt::format("up to {} in {}", largest, type);
      shifted.weights.front() = largest;
      list.push_back(std::move(shifted));
    }
  }
  return list;
}

Format plain_format(Element element) {
  return element == Element::kBf16 ? Format::kBf16 : Format::kF16;
}
std::vector<Format> lossless_formats(Element element) {
  if (element == Element::kBf16) return {Format::kBsfp, Format::kMxbf16};
  return {Format::kBsfp};
}

/// Every weight of each store has the bits of the plain store's.
void expect_same_weights(const PackedMatrix& plain, const std::vector<const PackedMatrix*>& stores) {
  for (int64_t n = 0; n < plain.columns; ++n) {
    const std::vector<float> expected = test::unpacked_column(plain, readings(plain.format).front(), n);
    for (const PackedMatrix* const store : stores) {
      const std::vector<float> actual = test::unpacked_column(*store, readings(store->format).front(), n);
      ASSERT_GE(actual.size(), expected.size());
      // Millions of weights are compared: one by one only where there is something to say.
      if (std::memcmp(actual.data(), expected.data(), expected.size() * sizeof(float)) == 0) continue;
      for (size_t k = 0; k < expected.size(); ++k) {
        ASSERT_EQ(std::bit_cast<uint32_t>(actual[k]), std::bit_cast<uint32_t>(expected[k]))
            << format_name(store->format) << ", column " << n << ", input " << k;
      }
    }
  }
}

void expect_same_products(const LinearWeight& weight, int64_t columns, int64_t k, Element element) {
  const std::vector<float> x = test::random_inputs(100, k, 9);
  ThreadTeam team(2);
  LinearWorkspace workspace;
  for (const int64_t rows : {1, 2, 16, 20, 100}) {
    const Reading plain = readings(plain_format(element)).front();
    const std::vector<float> expected = test::multiply(weight, plain, x.data(), rows, team, workspace);
    for (const Format format : lossless_formats(element)) {
      const std::vector<float> actual =
          test::multiply(weight, readings(format).front(), x.data(), rows, team, workspace);
      ASSERT_EQ(std::memcmp(actual.data(), expected.data(), actual.size() * sizeof(float)), 0)
          << format_name(format) << ", " << columns << " x " << k << ", " << rows << " rows";
    }
  }
}

std::vector<Format> with_plain(Element element) {
  std::vector<Format> formats = lossless_formats(element);
  formats.push_back(plain_format(element));
  return formats;
}

class Lossless : public testing::TestWithParam<MachinePath> {
 protected:
  test::SelectedKernels selected_{*GetParam().table};
};

INSTANTIATE_TEST_SUITE_P(, Lossless, testing::ValuesIn(machine_paths()),
                         test::path_name<testing::TestParamInfo<MachinePath>>);

TEST(LosslessFormats, ReturnEveryBitPattern) {
  for (const Source& source : sources()) {
    SCOPED_TRACE(source.name);
    const LinearWeight weight =
        test::pack(source.columns, source.k, source.weights, with_plain(source.element), source.element);
    const PackedMatrix& plain = *weight.find(plain_format(source.element));
    for (const Format format : lossless_formats(source.element)) {
      ASSERT_NO_THROW(operations(format).validate(*weight.find(format)));
      expect_same_weights(plain, {weight.find(format)});
      if (HasFatalFailure()) return;
    }
    // And those are the source's, but that a NaN may have become a quiet one.
    for (int64_t n = 0; n < source.columns; ++n) {
      const std::vector<float> column = test::unpacked_column(plain, readings(plain.format).front(), n);
      for (int64_t k = 0; k < source.k; ++k) {
        const float w = source.weights[static_cast<size_t>(n * source.k + k)];
        const float unpacked = column[static_cast<size_t>(k)];
        if (std::isnan(w)) {
          ASSERT_TRUE(std::isnan(unpacked));
        } else {
          ASSERT_EQ(std::bit_cast<uint32_t>(unpacked), std::bit_cast<uint32_t>(w));
        }
      }
    }
  }
}

TEST_P(Lossless, ProductsAreThoseOfThePlainFormatBitForBit) {
  for (const Source& source : sources()) {
    SCOPED_TRACE(source.name);
    const LinearWeight weight =
        test::pack(source.columns, source.k, source.weights, with_plain(source.element), source.element);
    expect_same_products(weight, source.columns, source.k, source.element);
    if (HasFatalFailure()) return;
  }
}

TEST_P(Lossless, Mxbf16DraftsAreMxfp4W4A8BitForBit) {
  for (const Source& source : sources()) {
    if (source.element != Element::kBf16) continue;
    SCOPED_TRACE(source.name);
    const LinearWeight weight =
        test::pack(source.columns, source.k, source.weights, {Format::kMxfp4, Format::kMxbf16});
    for (const int plane : {0, 1}) {
      ASSERT_TRUE(
          std::ranges::equal(weight.stores[0].plane(plane).bytes(), weight.stores[1].plane(plane).bytes()));
    }
    for (int64_t n = 0; n < weight.padded_columns(); ++n) {
      ASSERT_EQ(test::unpacked_column(weight.stores[1], Reading::kMxbf16Draft, n),
                test::unpacked_column(weight.stores[0], Reading::kMxfp4W4A8, n));
    }
    const std::vector<float> x = test::random_inputs(40, source.k, 10);
    ThreadTeam team(2);
    LinearWorkspace workspace;
    for (const int64_t rows : {1, 3, 16, 40}) {
      const std::vector<float> mxfp4 =
          test::multiply(weight, Reading::kMxfp4W4A8, x.data(), rows, team, workspace);
      const std::vector<float> draft =
          test::multiply(weight, Reading::kMxbf16Draft, x.data(), rows, team, workspace);
      ASSERT_EQ(std::memcmp(mxfp4.data(), draft.data(), mxfp4.size() * sizeof(float)), 0) << rows << " rows";
    }
  }
}

/// Packs the matrices of the default model whose names are asked for, and does something with each.
void for_matrices(const std::function<bool(const std::string&)>& wanted, const std::vector<Format>& formats,
                  const std::function<void(const MatrixSpec&, const LinearWeight&)>& visit) {
  const Checkpoint checkpoint = open_checkpoint(test::default_model());
  ThreadTeam team(2);
  std::vector<std::string> warnings;
  LoadOptions options;
  options.formats.assign(formats.begin(), formats.end());
  for (const MatrixSpec& spec : matrix_specs(checkpoint.config)) {
    if (!wanted(spec.name)) continue;
    visit(spec, pack_matrix(checkpoint, spec, options, team, warnings));
  }
  EXPECT_TRUE(warnings.empty());
}

TEST_P(Lossless, ProductsWithTheDefaultModelsMatricesAreThoseOfBf16BitForBit) {
  const bool slow = GetParam().name == "scalar";
  const auto wanted = [&](const std::string& name) {
    return name == "layers.7.output" || (!slow && (name == "layers.0.qkv" || name == "layers.3.down"));
  };
  for_matrices(wanted, {Format::kBf16, Format::kBsfp, Format::kMxbf16},
               [](const MatrixSpec& spec, const LinearWeight& weight) {
                 SCOPED_TRACE(spec.name);
                 expect_same_products(weight, spec.columns(), spec.k, Element::kBf16);
               });
}

TEST(LosslessFormats, HoldTheDefaultModelInFewBitsAndReturnIt) {
  double weights = 0.0;
  double bsfp = 0.0;
  double mxbf16 = 0.0;
  int compared = 0;
  for_matrices([](const std::string&) { return true; }, {Format::kBf16, Format::kBsfp, Format::kMxbf16},
               [&](const MatrixSpec& spec, const LinearWeight& weight) {
                 SCOPED_TRACE(spec.name);
                 weights += static_cast<double>(spec.columns() * spec.k);
                 bsfp += 8.0 * static_cast<double>(weight.find(Format::kBsfp)->bytes());
                 mxbf16 += 8.0 * static_cast<double>(weight.find(Format::kMxbf16)->bytes());
                 if (testing::Test::HasFatalFailure()) return;
                 expect_same_weights(*weight.find(Format::kBf16),
                                     {weight.find(Format::kBsfp), weight.find(Format::kMxbf16)});
                 ++compared;
               });
  EXPECT_EQ(compared, 33);
  std::cout << "bits per weight: bsfp " << bsfp / weights << ", mxbf16 " << mxbf16 / weights << "\n";
  EXPECT_LE(bsfp / weights, 13.2);
  EXPECT_LE(mxbf16 / weights, 12.9);
}

}  // namespace
}  // namespace verbatim
