#include <gtest/gtest.h>

#include <cmath>

#include "support/byte_model.h"

namespace verbatim {
namespace embed_test {
namespace {

const Model& model() {
  return test::byte_pair().target;
}

/// The embedding that a definition gives: the mean over the last hidden states of all beginnings of a text.
std::vector<float> mean_of_beginnings(const std::vector<int32_t>& tokens) {
  std::vector<double> sums;
  for (size_t count = 1; count <= tokens.size(); ++count) {
    const std::vector<float> last = embed(model(), std::span(tokens).first(count),
                                          {.pooling = Pooling::kLast, .normalize = false, .threads = 1});
    sums.resize(last.size());
    for (size_t i = 0; i < last.size(); ++i) sums[i] += last[i];
  }
  std::vector<float> mean;
  for (const double sum : sums) mean.push_back(static_cast<float>(sum / static_cast<double>(tokens.size())));
  return mean;
}

double length(const std::vector<float>& vector) {
  double square = 0;
  for (const float number : vector) square += double{number} * number;
  return std::sqrt(square);
}

TEST(Embed, IsTheMeanOfTheHiddenStatesOrTheLastOne) {
  const std::vector<int32_t> tokens = model().encode("a text to embed");
  EXPECT_EQ(embed(model(), tokens, {.normalize = false, .threads = 1}), mean_of_beginnings(tokens));
  const std::span<const int32_t> one = std::span(tokens).first(1);
  EXPECT_EQ(embed(model(), one, {.threads = 1}),
            embed(model(), one, {.pooling = Pooling::kLast, .threads = 1}));
}

TEST(Embed, HasTheLengthOneAndIsTheSameForEveryNumberOfThreads) {
  const std::vector<int32_t> tokens = model().encode(std::string(200, 'x') + "abc");
  const std::vector<float> vector = embed(model(), tokens, {.threads = 1});
  EXPECT_EQ(vector.size(), 64u);
  EXPECT_NEAR(length(vector), 1.0, 1e-6);
  EXPECT_EQ(embed(model(), tokens, {.threads = 2}), vector);
  const std::vector<float> whole = embed(model(), tokens, {.normalize = false, .threads = 1});
  for (size_t i = 0; i < vector.size(); ++i) EXPECT_NEAR(whole[i] / length(whole), vector[i], 1e-6);
}

TEST(Embed, RefusesTextsThatCannotBeEmbedded) {
  EXPECT_THROW(embed(model(), std::vector<int32_t>{}), Error);
  EXPECT_THROW(embed(model(), std::vector<int32_t>{260}), Error);
  EXPECT_THROW(embed(model(), std::vector<int32_t>(257, 5)), Error);
  EXPECT_THROW(embed(model(), std::vector<int32_t>{5}, {.threads = -1}), Error);
  EXPECT_THROW(embed(model(), std::vector<int32_t>{5}, {.reading = "int8-w8a8"}), Error);
}

}  // namespace
}  // namespace embed_test
}  // namespace verbatim
