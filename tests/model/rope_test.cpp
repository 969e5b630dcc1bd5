#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace verbatim {
namespace {

ModelConfig config(int32_t head_dim, float theta) {
  ModelConfig result;
  result.head_dim = head_dim;
  result.rope_theta = theta;
  return result;
}

TEST(RotaryEmbedding, FrequenciesFallGeometrically) {
  const RotaryEmbedding rope(config(64, 10000.0f));
  ASSERT_EQ(rope.half(), 32);
  for (size_t i = 0; i < 32; ++i) {
    EXPECT_NEAR(rope.frequencies()[i], std::pow(10000.0, -static_cast<double>(i) / 32.0), 1e-12);
  }
}

TEST(RotaryEmbedding, AnglesArePositionTimesFrequency) {
  const RotaryEmbedding rope(config(8, 10000.0f));
  float cosine[4];
  float sine[4];
  rope.angles(1000, cosine, sine);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_FLOAT_EQ(cosine[i], static_cast<float>(std::cos(1000.0 * rope.frequencies()[i])));
    EXPECT_FLOAT_EQ(sine[i], static_cast<float>(std::sin(1000.0 * rope.frequencies()[i])));
  }
}

TEST(RotaryEmbedding, LinearScalingDividesEveryFrequency) {
  ModelConfig scaled = config(64, 10000.0f);
  scaled.rope_scaling.kind = RopeScaling::Kind::kLinear;
  scaled.rope_scaling.factor = 4.0f;
  const RotaryEmbedding plain(config(64, 10000.0f));
  const RotaryEmbedding rope(scaled);
  for (size_t i = 0; i < 32; ++i) EXPECT_DOUBLE_EQ(rope.frequencies()[i], plain.frequencies()[i] / 4.0);
}

TEST(RotaryEmbedding, Llama3ScalingKeepsShortWavesStretchesLongOnesAndBlendsBetween) {
  ModelConfig scaled = config(128, 500000.0f);
  scaled.rope_scaling = {RopeScaling::Kind::kLlama3, 8.0f, 1.0f, 4.0f, 8192};
  const RotaryEmbedding plain(config(128, 500000.0f));
  const RotaryEmbedding rope(scaled);
  int kept = 0;
  int stretched = 0;
  int blended = 0;
  for (size_t i = 0; i < 64; ++i) {
    const double frequency = plain.frequencies()[i];
    const double wavelength = 2.0 * std::numbers::pi / frequency;
    const double ratio = rope.frequencies()[i] / frequency;
    if (wavelength < 2048.0) {
      EXPECT_DOUBLE_EQ(ratio, 1.0);
      ++kept;
    } else if (wavelength > 8192.0) {
      EXPECT_DOUBLE_EQ(ratio, 1.0 / 8.0);
      ++stretched;
    } else {
      EXPECT_GT(ratio, 1.0 / 8.0);
      EXPECT_LT(ratio, 1.0);
      ++blended;
    }
  }
  EXPECT_GT(kept, 0);
  EXPECT_GT(stretched, 0);
  EXPECT_GT(blended, 0);
}

TEST(RotaryEmbedding, FrequencyFactorsOfAFileDivide) {
  ModelConfig with_factors = config(8, 10000.0f);
  with_factors.rope_frequency_factors = {1.0f, 2.0f, 4.0f, 8.0f};
  const RotaryEmbedding plain(config(8, 10000.0f));
  const RotaryEmbedding rope(with_factors);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_DOUBLE_EQ(rope.frequencies()[i], plain.frequencies()[i] / static_cast<double>(1 << i));
  }
}

}  // namespace
}  // namespace verbatim
