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

/// The cosine and the sine of a pair at a position.
struct Angle {
  int64_t position;
  size_t pair;
  double cosine;
  double sine;
};

void expect_angles(const RotaryEmbedding& rope, double tolerance, const std::vector<Angle>& angles) {
  std::vector<float> cosine(static_cast<size_t>(rope.half()));
  std::vector<float> sine(static_cast<size_t>(rope.half()));
  for (const Angle& e : angles) {
    rope.angles(e.position, cosine.data(), sine.data());
    EXPECT_NEAR(cosine[e.pair], e.cosine, tolerance) << e.position << " " << e.pair;
    EXPECT_NEAR(sine[e.pair], e.sine, tolerance) << e.position << " " << e.pair;
  }
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

// The expected numbers of the tests below come from a separate program that follows Transformers'
// modeling_rope_utils.py line by line, in double precision.

struct Expected {
  size_t pair;
  double value;
};

void expect_frequencies(const RotaryEmbedding& rope, std::initializer_list<Expected> expected) {
  for (const Expected& e : expected) {
    EXPECT_NEAR(rope.frequencies()[e.pair], e.value, 1e-12 * e.value) << "pair " << e.pair;
  }
}

ModelConfig yarn_config(int32_t head_dim, float theta, float factor, int32_t original_context,
                        YarnScaling yarn) {
  ModelConfig scaled = config(head_dim, theta);
  scaled.rope_scaling.kind = RopeScaling::Kind::kYarn;
  scaled.rope_scaling.factor = factor;
  scaled.rope_scaling.original_context = original_context;
  scaled.rope_scaling.yarn = yarn;
  return scaled;
}

TEST(RotaryEmbedding, YarnKeepsFastPairsInterpolatesSlowOnesAndRampsBetween) {
  const RotaryEmbedding rope(yarn_config(128, 1e6f, 4.0f, 32768, {}));
  expect_frequencies(rope, {{0, 1.0},
                            {10, 0.1154781984689458},
                            {22, 0.008659643233600653},
                            {23, 0.006978305848598663},
                            {24, 0.005375321490790102},
                            {30, 0.0010643609812470017},
                            {36, 0.00017984115587395423},
                            {39, 6.490394320837028e-05},
                            {40, 4.445698525097307e-05},
                            {63, 3.102344401879299e-07}});
}

TEST(RotaryEmbedding, YarnsRampNeedNotEndAtWholePairs) {
  const RotaryEmbedding rope(yarn_config(128, 1e6f, 4.0f, 32768, {.truncate = false}));
  expect_frequencies(rope, {{0, 1.0},
                            {23, 0.006978305848598663},
                            {24, 0.0055172704751341225},
                            {30, 0.0010792377416765538},
                            {39, 6.187806812450695e-05},
                            {40, 4.445698525097307e-05},
                            {63, 3.102344401879299e-07}});
}

TEST(RotaryEmbedding, YarnsBoundsCanBeMoved) {
  const RotaryEmbedding rope(yarn_config(64, 1e4f, 40.0f, 4096, {.beta_fast = 24.0f, .beta_slow = 2.0f}));
  expect_frequencies(rope, {{0, 1.0},
                            {9, 0.07498942093324558},
                            {10, 0.056234132519034905},
                            {12, 0.02853955588301962},
                            {16, 0.005125},
                            {20, 0.00038737901337062636},
                            {21, 5.928434264154137e-05},
                            {31, 3.33380358040831e-06}});
}

TEST(RotaryEmbedding, YarnsAttentionFactorMultipliesCosinesAndSines) {
  const RotaryEmbedding rope(yarn_config(128, 1e6f, 4.0f, 32768, {.attention_factor = 1.138629436111989f}));
  expect_angles(rope, 2e-7,
                {Angle{0, 0, 1.138629436111989, 0.0}, Angle{0, 63, 1.138629436111989, 0.0},
                 Angle{1000, 0, 0.6403413705180644, 0.9415093849684947},
                 Angle{1000, 30, 0.5523071460119422, 0.9957076926713229},
                 Angle{1000, 63, 1.1386293813180621, 0.0003532420600273801},
                 Angle{100000, 0, -1.137901632645794, 0.04070463367655858},
                 Angle{100000, 30, 1.058225562838858, -0.42028044319845337},
                 Angle{100000, 63, 1.1380815407852716, 0.03531854052092713}});
}

TEST(RotaryEmbedding, DynamicScalingStretchesTheBaseWithTheRowsOwnPosition) {
  ModelConfig scaled = config(64, 10000.0f);
  scaled.rope_scaling.kind = RopeScaling::Kind::kDynamic;
  scaled.rope_scaling.factor = 2.0f;
  scaled.rope_scaling.original_context = 2048;
  const RotaryEmbedding rope(scaled);
  expect_angles(rope, 1e-7,
                {Angle{0, 0, 1.0, 0.0}, Angle{0, 31, 1.0, 0.0},
                 Angle{2047, 0, 0.24971525821383958, -0.9683193119086263},
                 Angle{2047, 1, -0.35735581459940624, 0.9339683194691321},
                 Angle{2047, 16, -0.049627358062309994, 0.9987678035117848},
                 Angle{2047, 31, 0.962973959215839, 0.26959442477946716},
                 Angle{2048, 0, 0.9497343348236519, -0.31305701279012343},
                 Angle{2048, 1, -0.8757434084134095, 0.48277684557201406},
                 Angle{2048, 16, -0.049312798561087536, 0.9987833838716349},
                 Angle{2048, 31, 0.9630098315329919, 0.2694662583159506},
                 Angle{4095, 0, -0.0659759965580649, -0.9978212103769744},
                 Angle{4095, 1, -0.19582332269762362, -0.9806391927144572},
                 Angle{4095, 16, -0.32848201389252746, -0.9445102257514788},
                 Angle{4095, 31, 0.9834790186848892, 0.18102215280624487},
                 Angle{8191, 1, 0.7610079944550826, 0.648742500824058},
                 Angle{8191, 16, 0.1567106705801004, -0.9876445543444945},
                 Angle{8191, 31, 0.9878502767819085, 0.15540859262571932}});
}

TEST(RotaryEmbedding, DynamicScalingLeavesTheOriginalContextAsItIs) {
  ModelConfig scaled = config(64, 10000.0f);
  scaled.rope_scaling.kind = RopeScaling::Kind::kDynamic;
  scaled.rope_scaling.factor = 2.0f;
  scaled.rope_scaling.original_context = 2048;
  const RotaryEmbedding plain(config(64, 10000.0f));
  const RotaryEmbedding rope(scaled);
  std::vector<float> cosine(32);
  std::vector<float> sine(32);
  std::vector<float> plain_cosine(32);
  std::vector<float> plain_sine(32);
  for (const int64_t position : {0, 1, 1000, 2047}) {
    rope.angles(position, cosine.data(), sine.data());
    plain.angles(position, plain_cosine.data(), plain_sine.data());
    EXPECT_EQ(cosine, plain_cosine);
    EXPECT_EQ(sine, plain_sine);
  }
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
