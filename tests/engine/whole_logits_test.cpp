#include "verbatim/whole_logits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "support/byte_model.h"
#include "verbatim/error.h"
#include "verbatim/top_logits.h"

namespace verbatim {
namespace whole_logits_test {
namespace {

using ::testing::HasSubstr;

const Model& model() {
  return test::byte_pair().target;
}

std::vector<int32_t> some_text() {
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 40; ++i) tokens.push_back((i * 37 + i * i % 13) % model().vocab_size());
  return tokens;
}

std::vector<uint32_t> bits_of_all(const WholeLogitsOptions& options) {
  std::vector<uint32_t> bits;
  int64_t next = 0;
  whole_logits(model(), some_text(), options, [&](int64_t position, std::span<const float> logits) {
    EXPECT_EQ(position, next++);
    for (const float logit : logits) bits.push_back(std::bit_cast<uint32_t>(logit));
  });
  return bits;
}

TEST(WholeLogits, AreThoseThatTopLogitsSorts) {
  const std::vector<int32_t> tokens = some_text();
  const auto sorted = top_logits(model(), tokens, {.top = 1 << 24, .threads = 1});
  size_t positions = 0;
  whole_logits(model(), tokens, {.threads = 1}, [&](int64_t position, std::span<const float> logits) {
    ++positions;
    ASSERT_EQ(std::ssize(logits), model().vocab_size());
    for (const TokenLogit& each : sorted.at(static_cast<size_t>(position))) {
      EXPECT_EQ(logits[static_cast<size_t>(each.token)], each.logit);
    }
  });
  EXPECT_EQ(positions, tokens.size());
}

TEST(WholeLogits, AreTheSameBitForBitForEveryChunkAndNumberOfThreads) {
  const std::vector<uint32_t> expected = bits_of_all({.threads = 1});
  for (const int64_t chunk : {1, 7, 39}) {
    for (const int32_t threads : {1, 2}) {
      EXPECT_EQ(bits_of_all({.prefill_chunk = chunk, .threads = threads}), expected)
          << chunk << " tokens in a pass, " << threads << " threads";
    }
  }
}

TEST(WholeLogits, AnExceptionOfTheVisitorEndsTheComputation) {
  int visits = 0;
  const auto stop = [&](int64_t, std::span<const float>) {
    if (++visits == 3) throw std::runtime_error("enough");
  };
  EXPECT_THROW(whole_logits(model(), some_text(), {.prefill_chunk = 1}, stop), std::runtime_error);
  EXPECT_EQ(visits, 3);
}

TEST(WholeLogits, RefuseWhatCannotBeEvaluated) {
  const auto message = [](const std::vector<int32_t>& tokens, const WholeLogitsOptions& options) {
    try {
      whole_logits(model(), tokens, options, [](int64_t, std::span<const float>) {});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message({}, {}), HasSubstr("cannot be evaluated"));
  EXPECT_THAT(message({1 << 24}, {}), HasSubstr("outside the vocabulary"));
  EXPECT_THAT(message({1}, {.prefill_chunk = 0}), HasSubstr("at least 1"));
  EXPECT_THAT(message({1}, {.reading = "nothing"}), HasSubstr("nothing"));
}

}  // namespace
}  // namespace whole_logits_test
}  // namespace verbatim
