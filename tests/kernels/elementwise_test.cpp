#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "support/machine_paths.h"
#include "support/random.h"

namespace verbatim {
namespace {

using test::machine_paths;
using test::MachinePath;

class Elementwise : public testing::TestWithParam<MachinePath> {
 protected:
  const KernelTable& kernel_ = *GetParam().table;
  const KernelTable& scalar_ = *machine_paths().front().table;
};

INSTANTIATE_TEST_SUITE_P(, Elementwise, testing::ValuesIn(machine_paths()),
                         test::path_name<testing::TestParamInfo<MachinePath>>);

TEST_P(Elementwise, ConversionToBf16RoundsLikeTheReference) {
  std::vector<float> x = test::random_floats(1 << 16, 1);
  for (size_t i = 0; i < x.size(); i += 2) x[i] = std::bit_cast<float>(static_cast<uint32_t>(i * 65537u + i));
  const float infinity = std::numeric_limits<float>::infinity();
  const float special[] = {0.0f, -0.0f, infinity, -infinity, NAN, -NAN, 1e-40f, 3.4e38f};
  std::copy(std::begin(special), std::end(special), x.begin());
  std::vector<BFloat16> out(x.size());
  kernel_.to_bf16(x.data(), static_cast<int64_t>(x.size()), out.data());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(out[i].bits, to_bfloat16(x[i]).bits) << x[i];
}

TEST_P(Elementwise, Int8QuantizationIsTheSameOnEveryPath) {
  std::vector<float> x = test::random_floats(32 * 40, 2, 3.0f);
  std::fill(x.begin() + 32, x.begin() + 64, 0.0f);  // a group of zeros
  struct Quantized {
    std::vector<int8_t> codes = std::vector<int8_t>(32 * 40);
    std::vector<float> scales = std::vector<float>(40);
    std::vector<int32_t> sums = std::vector<int32_t>(40);
  } actual, expected;
  kernel_.quantize_int8(x.data(), 32 * 40, actual.codes.data(), actual.scales.data(), actual.sums.data());
  scalar_.quantize_int8(x.data(), 32 * 40, expected.codes.data(), expected.scales.data(),
                        expected.sums.data());
  EXPECT_EQ(actual.codes, expected.codes);
  EXPECT_EQ(actual.scales, expected.scales);
  EXPECT_EQ(actual.sums, expected.sums);
  for (size_t i = 0; i < x.size(); ++i) {
    const int8_t code = actual.codes[i / 4 * 4 + static_cast<size_t>(kQuadOrder[i % 4])];
    ASSERT_NEAR(2.0f * actual.scales[i / 32] * code, x[i], actual.scales[i / 32] * 1.001f);
  }
}

TEST_P(Elementwise, GroupsOf128AreQuantizedTheSameOnEveryPath) {
  const int64_t n = 128 * 5 + 64;
  std::vector<float> x = test::random_floats(n, 8, 3.0f);
  std::fill(x.begin() + 128, x.begin() + 256, 0.0f);
  const float special[] = {NAN, std::numeric_limits<float>::infinity(), -3e38f, 1e-42f};
  std::copy(std::begin(special), std::end(special), x.begin() + 256);
  struct Quantized {
    std::vector<int8_t> codes = std::vector<int8_t>(n);
    std::vector<float> scales = std::vector<float>(n / 32);
    std::vector<int32_t> sums = std::vector<int32_t>(n / 32);
  };
  struct Case {
    decltype(KernelTable::quantize_int4) KernelTable::*quantize;
    int largest;
    float kept;
  };
  for (const Case& of :
       {Case{&KernelTable::quantize_int4, 7, 0.9f}, Case{&KernelTable::quantize_wide, 127, 1.0f}}) {
    Quantized actual;
    Quantized expected;
    (kernel_.*of.quantize)(x.data(), n, actual.codes.data(), actual.scales.data(), actual.sums.data());
    (scalar_.*of.quantize)(x.data(), n, expected.codes.data(), expected.scales.data(), expected.sums.data());
    EXPECT_EQ(actual.codes, expected.codes);
    EXPECT_EQ(actual.scales, expected.scales);
    EXPECT_EQ(actual.sums, expected.sums);
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_LE(std::abs(actual.codes[i]), of.largest);
      if (i / 128 == 2) continue;
      const int8_t code = actual.codes[i / 4 * 4 + static_cast<size_t>(kQuadOrder[i % 4])];
      const float step = 2.0f * actual.scales[i / 32];
      const float cut = step * static_cast<float>(of.largest);
      ASSERT_NEAR(step * code, std::clamp(x[i], -cut, cut), step * 0.5001f);
    }
  }
}

TEST_P(Elementwise, NormActivationAndRotationAreTheSameOnEveryPath) {
  const int64_t n = 1008;
  for (const float deviation : {1e-30f, 1e-3f, 1.0f, 30.0f, 1e18f}) {
    const std::vector<float> x = test::random_floats(n, 11, deviation);
    const std::vector<float> y = test::random_floats(n, 12);
    struct Results {
      std::vector<float> norm = std::vector<float>(n);
      std::vector<float> gate = std::vector<float>(n);
      std::vector<float> gelu = std::vector<float>(n);
      std::vector<float> layer_norm = std::vector<float>(n);
      std::vector<float> short_layer_norm = std::vector<float>(n);
      std::vector<float> plain_gelu = std::vector<float>(n);
      std::vector<float> capped;
      std::vector<float> rotated;
      std::vector<float> sum;
    };
    const auto results = [&](const KernelTable& kernel) {
      Results out;
      out.sum = out.rotated = x;
      kernel.rms_norm(x.data(), y.data(), n, n, 1e-6f, out.norm.data());
      kernel.layer_norm(x.data(), y.data(), x.data(), n, n, 1e-6f, out.layer_norm.data());
      kernel.layer_norm(x.data(), y.data(), x.data(), n, n - 5, 1e-6f, out.short_layer_norm.data());
      kernel.gelu(x.data(), n, out.plain_gelu.data());
      kernel.silu_gate(x.data(), y.data(), n, out.gate.data());
      kernel.gelu_gate(x.data(), y.data(), n, out.gelu.data());
      out.capped = x;
      kernel.soft_cap(out.capped.data(), n, 0.7f, 1.5f);
      kernel.rotate(out.rotated.data(), y.data(), y.data() + 500, 500);
      kernel.add(out.sum.data(), y.data(), n);
      kernel.scale(out.sum.data(), n, 0.3f);
      return out;
    };
    const Results actual = results(kernel_);
    const Results expected = results(scalar_);
    EXPECT_EQ(actual.norm, expected.norm) << deviation;
    EXPECT_EQ(actual.layer_norm, expected.layer_norm) << deviation;
    EXPECT_EQ(actual.short_layer_norm, expected.short_layer_norm) << deviation;
    EXPECT_EQ(actual.plain_gelu, expected.plain_gelu) << deviation;
    EXPECT_EQ(actual.gate, expected.gate) << deviation;
    EXPECT_EQ(actual.gelu, expected.gelu) << deviation;
    EXPECT_EQ(actual.capped, expected.capped) << deviation;
    EXPECT_EQ(actual.rotated, expected.rotated) << deviation;
    EXPECT_EQ(actual.sum, expected.sum) << deviation;
  }
}

TEST_P(Elementwise, RmsNormIsCloseToTheReference) {
  const int64_t length = 100;
  std::vector<float> x = test::random_floats(128, 3);
  std::fill(x.begin() + length, x.end(), 0.0f);
  const std::vector<float> weight = test::random_floats(128, 4);
  std::vector<float> out(128);
  kernel_.rms_norm(x.data(), weight.data(), 128, length, 1e-5f, out.data());
  double squares = 0.0;
  for (const float value : x) squares += static_cast<double>(value) * value;
  const double factor = 1.0 / std::sqrt(squares / length + 1e-5);
  for (size_t i = 0; i < 128; ++i) ASSERT_NEAR(out[i], x[i] * factor * weight[i], 1e-5);
}

// The mean is far from zero, where numbers beyond the length would count most.
TEST_P(Elementwise, LayerNormIsCloseToTheReference) {
  for (const int64_t length : {128, 100, 97, 96, 3, 1}) {
    std::vector<float> x = test::random_floats(128, 3);
    std::vector<float> weight = test::random_floats(128, 4);
    std::vector<float> bias = test::random_floats(128, 5);
    for (std::vector<float>* const values : {&x, &weight, &bias}) {
      if (values == &x) {
        for (float& value : x) value += 10.0f;
      }
      std::fill(values->begin() + length, values->end(), 0.0f);
    }
    std::vector<float> out(128);
    kernel_.layer_norm(x.data(), weight.data(), bias.data(), 128, length, 1e-5f, out.data());
    const auto size = static_cast<double>(length);
    double mean = 0.0;
    for (const float value : x) mean += static_cast<double>(value) / size;
    double variance = 0.0;
    for (size_t i = 0; i < static_cast<size_t>(length); ++i) variance += std::pow(x[i] - mean, 2) / size;
    const double factor = 1.0 / std::sqrt(variance + 1e-5);
    for (size_t i = 0; i < 128; ++i) {
      const double expected =
          i < static_cast<size_t>(length) ? (x[i] - mean) * factor * weight[i] + bias[i] : 0.0;
      ASSERT_NEAR(out[i], expected, 2e-5 * std::max(1.0, factor)) << length << ' ' << i;
    }
  }
}

TEST_P(Elementwise, GeluIsThatOfAGateWithoutOne) {
  const std::vector<float> x = test::random_floats(4096, 6);
  const std::vector<float> ones(x.size(), 1.0f);
  std::vector<float> plain(x.size());
  std::vector<float> gated(x.size());
  kernel_.gelu(x.data(), static_cast<int64_t>(x.size()), plain.data());
  kernel_.gelu_gate(x.data(), ones.data(), static_cast<int64_t>(x.size()), gated.data());
  EXPECT_EQ(plain, gated);
}

TEST_P(Elementwise, SiluGateIsCloseToTheReferenceOverTheWholeRange) {
  std::vector<float> gate(4096);
  for (size_t i = 0; i < gate.size(); ++i) gate[i] = (static_cast<float>(i) - 2048.0f) / 16.0f;
  const std::vector<float> up = test::random_floats(gate.size(), 5);
  std::vector<float> out(gate.size());
  kernel_.silu_gate(gate.data(), up.data(), static_cast<int64_t>(gate.size()), out.data());
  for (size_t i = 0; i < gate.size(); ++i) {
    const double g = gate[i];
    const double expected = g / (1.0 + std::exp(-g)) * up[i];
    ASSERT_NEAR(out[i], expected, 1e-5 + std::fabs(expected) * 2e-6) << g;
  }
}

TEST_P(Elementwise, GeluGateIsCloseToTheReference) {
  std::vector<float> gate(4096);
  for (size_t i = 0; i < gate.size(); ++i) gate[i] = (static_cast<float>(i) - 2048.0f) / 64.0f;
  const std::vector<float> up = test::random_floats(gate.size(), 5);
  std::vector<float> out(gate.size());
  kernel_.gelu_gate(gate.data(), up.data(), static_cast<int64_t>(gate.size()), out.data());
  for (size_t i = 0; i < gate.size(); ++i) {
    const double g = gate[i];
    const double expected =
        0.5 * g * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (g + 0.044715 * g * g * g))) * up[i];
    ASSERT_NEAR(out[i], expected, 1e-5 + std::fabs(expected) * 2e-6) << g;
  }
}

TEST_P(Elementwise, SoftCapIsCloseToTheReference) {
  std::vector<float> x(4096);
  for (size_t i = 0; i < x.size(); ++i) x[i] = (static_cast<float>(i) - 2048.0f) / 4.0f;
  const std::vector<float> before = x;
  kernel_.soft_cap(x.data(), static_cast<int64_t>(x.size()), 0.3f, 50.0f);
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_NEAR(x[i], 50.0 * std::tanh(static_cast<double>(before[i]) * 0.3 / 50.0), 2e-5) << before[i];
  }
}

TEST_P(Elementwise, SoftCapHidesNoNaN) {
  std::vector<float> x(32, 1.0f);
  x[3] = std::nanf("");
  x[16] = std::numeric_limits<float>::infinity();
  kernel_.soft_cap(x.data(), static_cast<int64_t>(x.size()), 1.0f, 2.0f);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(std::isnan(x[i]), i == 3 || i == 16) << i;
}

TEST_P(Elementwise, RotationTurnsPairsByTheirAngle) {
  for (const int64_t half : {4, 16, 20, 64}) {
    const std::vector<float> angles = test::random_floats(static_cast<size_t>(half), 6);
    std::vector<float> cosine;
    std::vector<float> sine;
    for (const float angle : angles) {
      cosine.push_back(std::cos(angle));
      sine.push_back(std::sin(angle));
    }
    const std::vector<float> before = test::random_floats(static_cast<size_t>(2 * half), 7);
    std::vector<float> x = before;
    kernel_.rotate(x.data(), cosine.data(), sine.data(), half);
    for (size_t i = 0; i < static_cast<size_t>(half); ++i) {
      const size_t j = i + static_cast<size_t>(half);
      ASSERT_NEAR(x[i], before[i] * cosine[i] - before[j] * sine[i], 1e-6);
      ASSERT_NEAR(x[j], before[j] * cosine[i] + before[i] * sine[i], 1e-6);
    }
  }
}

TEST_P(Elementwise, SoftmaxOverChunksIsCloseToTheReference) {
  const std::vector<float> scores = test::random_floats(256, 8, 4.0f);
  const float scale = 0.5f;
  // The first chunk is seen from position 5 on, the second up to position 70.
  SoftmaxState state{-std::numeric_limits<float>::infinity(), 0.0f};
  std::vector<float> first(scores.begin(), scores.begin() + 128);
  std::vector<float> second(scores.begin() + 128, scores.end());
  std::vector<BFloat16> p1(128);
  std::vector<BFloat16> p2(128);
  EXPECT_EQ(kernel_.softmax_chunk(first.data(), 128, 5, 128, scale, &state, p1.data()), 0.0f);
  const float correction = kernel_.softmax_chunk(second.data(), 128, 0, 70, scale, &state, p2.data());

  double maximum = -1e30;
  for (size_t i = 5; i < 198; ++i) maximum = std::max<double>(maximum, scores[i] * scale);
  double sum = 0.0;
  for (size_t i = 5; i < 198; ++i) sum += std::exp(scores[i] * scale - maximum);
  EXPECT_NEAR(state.maximum, maximum, 1e-6);
  EXPECT_NEAR(state.sum, sum, sum * 4e-3);
  for (size_t i = 0; i < 256; ++i) {
    const float p = i < 128 ? to_float(p1[i]) * correction : to_float(p2[i - 128]);
    const bool visible = i >= 5 && i < 198;
    const double expected = visible ? std::exp(scores[i] * scale - maximum) : 0.0;
    ASSERT_NEAR(p, expected, expected * 4e-3 + 1e-30) << i;
    if (!visible) {
      ASSERT_EQ(p, 0.0f) << i;
    }
  }
}

// Probabilities in F32 may take the places of their scores.
TEST_P(Elementwise, SoftmaxInF32IsExactAndTheSameOnEveryPath) {
  const std::vector<float> scores = test::random_floats(128, 8, 4.0f);
  SoftmaxState state{-std::numeric_limits<float>::infinity(), 0.0f};
  SoftmaxState expected_state = state;
  std::vector<float> mine = scores;
  std::vector<float> theirs = scores;
  std::vector<float> expected(128);
  EXPECT_EQ(kernel_.softmax_chunk_f32(mine.data(), 128, 3, 125, 0.7f, &state, mine.data()),
            scalar_.softmax_chunk_f32(theirs.data(), 128, 3, 125, 0.7f, &expected_state, expected.data()));
  EXPECT_EQ(state.maximum, expected_state.maximum);
  EXPECT_EQ(state.sum, expected_state.sum);
  double sum = 0.0;
  for (size_t i = 0; i < 128; ++i) {
    ASSERT_EQ(mine[i], expected[i]) << scores[i];
    const double exact = i >= 3 && i < 125 ? std::exp(double{scores[i]} * 0.7f - state.maximum) : 0.0;
    ASSERT_NEAR(mine[i], exact, exact * 2e-6) << scores[i];
    sum += exact;
  }
  EXPECT_NEAR(state.sum, sum, sum * 1e-6);
}

TEST_P(Elementwise, SoftmaxIsTheSameOnEveryPath) {
  for (const float deviation : {1.0f, 30.0f, 1e4f}) {
    const std::vector<float> scores = test::random_floats(128, 8, deviation);
    SoftmaxState state{0.5f * deviation, 3.0f};
    SoftmaxState expected_state = state;
    std::vector<float> mine = scores;
    std::vector<float> theirs = scores;
    std::vector<BFloat16> probabilities(128);
    std::vector<BFloat16> expected(128);
    EXPECT_EQ(kernel_.softmax_chunk(mine.data(), 128, 3, 125, 0.7f, &state, probabilities.data()),
              scalar_.softmax_chunk(theirs.data(), 128, 3, 125, 0.7f, &expected_state, expected.data()));
    EXPECT_EQ(state.maximum, expected_state.maximum);
    EXPECT_EQ(state.sum, expected_state.sum);
    for (size_t i = 0; i < 128; ++i) ASSERT_EQ(probabilities[i].bits, expected[i].bits) << scores[i];
  }
}

}  // namespace
}  // namespace verbatim
