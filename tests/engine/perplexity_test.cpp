#include "engine/perplexity.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "checkpoint/bad_input.h"
#include "engine/model_access.h"
#include "support/engine_support.h"
#include "support/other_vocabulary.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"
#include "verbatim/score.h"

namespace verbatim {
namespace perplexity_test {
namespace {

std::vector<int32_t> some_tokens(size_t count, int32_t vocabulary) {
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int32_t>((i * 37 + i * i % 13) % static_cast<size_t>(vocabulary)));
  }
  return tokens;
}

double nll_of(const float* logits, int32_t vocabulary, int32_t token) {
  long double sum = 0;
  for (int32_t t = 0; t < vocabulary; ++t) sum += std::exp(static_cast<long double>(logits[t]));
  return static_cast<double>(std::log(sum) - static_cast<long double>(logits[token]));
}

Model default_model(std::vector<std::string> formats) {
  ModelOptions options;
  options.formats = std::move(formats);
  options.threads = 2;
  return Model::load(test::default_model(), options);
}

const char* const kText =
    "def fibonacci(n):\n    \"\"\"Return the n-th number.\"\"\"\n    if n < 2:\n        return n\n"
    "    return fibonacci(n - 1) + fibonacci(n - 2)\n";

std::string bits_of(const PerplexityResult& result) {
  return fmt::format("{:a} {:a} {:a} {:a} {:a} {:a} {:a} {:a}", result.mean_nll, result.standard_error,
                     result.perplexity, result.excess_nll, result.agreement, result.overlap,
                     result.divergence, result.divergence_standard_error);
}

TEST(ScoringWindows, SideBySideScoreEveryTokenThatHasAPast) {
  const std::vector<ScoringWindow> behind_bos = scoring_windows(10, 4, 4, true);
  ASSERT_EQ(behind_bos.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const auto begin = static_cast<int64_t>(i) * 4;
    EXPECT_EQ(behind_bos[i].begin, begin);
    EXPECT_EQ(behind_bos[i].first_scored, begin);
    EXPECT_EQ(behind_bos[i].end, std::min<int64_t>(begin + 4, 10));
  }
  const std::vector<ScoringWindow> alone = scoring_windows(9, 4, 4, false);
  ASSERT_EQ(alone.size(), 2u) << "the last token has no past and so no window";
  EXPECT_EQ(alone[0].first_scored, 1);
  EXPECT_EQ(alone[1].first_scored, 5);
  EXPECT_EQ(alone[1].end, 8);
}

TEST(ScoringWindows, ThatOverlapScoreEveryTokenOnce) {
  for (const bool past : {false, true}) {
    for (int64_t tokens = 2; tokens < 40; ++tokens) {
      for (int64_t length = 2; length < 12; ++length) {
        for (int64_t stride = 1; stride < length; ++stride) {
          int64_t next = past ? 0 : 1;
          for (const ScoringWindow& w : scoring_windows(tokens, length, stride, past)) {
            EXPECT_EQ(w.first_scored, next);
            EXPECT_LE(w.end - w.begin, length);
            EXPECT_EQ(w.begin % stride, 0);
            if (w.begin > 0) {
              EXPECT_LE(w.end - w.first_scored, stride);
              EXPECT_GE(w.first_scored - w.begin, length - stride);
            }
            next = w.end;
          }
          EXPECT_EQ(next, tokens);
        }
      }
    }
  }
}

TEST(ScorePrediction, ComparesTwoDistributions) {
  const float p[] = {std::log(0.5f), std::log(0.25f), std::log(0.25f)};
  const float q[] = {std::log(0.1f) + 3.0f, std::log(0.6f) + 3.0f, std::log(0.3f) + 3.0f};
  const TokenScore score = score_prediction(p, 2, q);
  EXPECT_NEAR(score.nll, std::log(4.0), 1e-6);
  EXPECT_NEAR(score.excess_nll, std::log(4.0) + std::log(0.3), 1e-6);
  EXPECT_NEAR(score.overlap, 0.1 + 0.25 + 0.25, 1e-6);
  EXPECT_NEAR(score.divergence, 0.1 * std::log(0.2) + 0.6 * std::log(2.4) + 0.3 * std::log(1.2), 1e-6);
  EXPECT_FALSE(score.same_best);
  const TokenScore alone = score_prediction(p, 0, {});
  EXPECT_NEAR(alone.nll, std::log(2.0), 1e-6);
}

TEST(ScorePrediction, HoldsForLogitsFarApart) {
  const float logits[] = {-3e4f, 3e4f, 0.0f};
  EXPECT_EQ(score_prediction(logits, 1, logits).nll, 0.0);
  EXPECT_EQ(score_prediction(logits, 0, logits).nll, 6e4);
  EXPECT_EQ(score_prediction(logits, 1, logits).overlap, 1.0);
  EXPECT_EQ(score_prediction(logits, 1, logits).divergence, 0.0);
  const float broken[] = {NAN, 1.0f, 1.0f};
  EXPECT_TRUE(std::isnan(score_prediction(logits, 1, broken).divergence));
  const float never[] = {-INFINITY, 1.0f, 1.0f};
  EXPECT_NEAR(score_prediction(logits, 1, never).divergence, 0.5 * 3e4 - std::log(2.0), 1e-6);
}

class TinyModelScores : public testing::Test {
 protected:
  TinyModelScores() {
    test::TinyModelOptions options;
    options.context = 2048;
    test::write_tiny_llama(folder_.path() / "model", options);
    decoder_.emplace(test::load_decoder(folder_.path() / "model"));
  }

  /// What score_tokens() should give, each window evaluated whole and row by row.
  std::vector<double> expected(const std::vector<int32_t>& tokens, const std::vector<int32_t>& beginning,
                               int64_t length, int64_t stride, Reading reading) {
    ThreadTeam team(1);
    std::vector<double> nlls;
    const int32_t vocabulary = decoder_->config().vocab_size;
    size_t next = beginning.empty() ? 1 : 0;
    for (size_t begin = 0; next < tokens.size(); begin += static_cast<size_t>(stride)) {
      const size_t end = std::min(tokens.size(), begin + static_cast<size_t>(length));
      std::vector<int32_t> window(tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                                  tokens.begin() + static_cast<std::ptrdiff_t>(end));
      window.insert(window.begin(), beginning.begin(), beginning.end());
      const std::vector<float> logits = test::all_logits(*decoder_, window, 16, reading, team);
      for (size_t t = beginning.empty() ? std::max(next, begin + 1) : next; t < end; ++t) {
        const size_t row = t - begin + beginning.size() - 1;
        nlls.push_back(nll_of(logits.data() + row * static_cast<size_t>(vocabulary), vocabulary, tokens[t]));
      }
      next = end;
    }
    return nlls;
  }

  test::TemporaryFolder folder_;
  std::optional<Decoder> decoder_;
};

TEST_F(TinyModelScores, AreThoseOfTheWindowsEvaluatedAlone) {
  const std::vector<int32_t> tokens = some_tokens(101, decoder_->config().vocab_size);
  ThreadTeam team(2);
  for (const std::vector<int32_t>& beginning : std::vector<std::vector<int32_t>>{{}, {1}, {1, 7}}) {
    for (const auto& [length, stride] : {std::pair{200, 200}, {101, 101}, {25, 25}, {25, 10}, {30, 1}}) {
      SCOPED_TRACE(fmt::format("beginning {} length {} stride {}", beginning.size(), length, stride));
      const std::vector<double> wanted = expected(tokens, beginning, length, stride, Reading::kMxfp4W4A8);
      const std::vector<TokenScore> scores =
          score_tokens(*decoder_, tokens, beginning, length, stride, Reading::kMxfp4W4A8, std::nullopt, team);
      ASSERT_EQ(scores.size(), wanted.size());
      for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(scores[i].nll, wanted[i], 1e-9) << i;
    }
  }
}

TEST_F(TinyModelScores, OfWindowsLongerThanAPassAreTheSame) {
  const std::vector<int32_t> tokens = some_tokens(1300, decoder_->config().vocab_size);
  ThreadTeam team(2);
  for (const auto& [length, stride] : {std::pair{1300, 1300}, {1100, 100}}) {
    const std::vector<double> wanted = expected(tokens, {1}, length, stride, Reading::kFull);
    const std::vector<TokenScore> scores =
        score_tokens(*decoder_, tokens, {1}, length, stride, Reading::kFull, std::nullopt, team);
    ASSERT_EQ(scores.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(scores[i].nll, wanted[i], 1e-9) << i;
  }
}

TEST_F(TinyModelScores, ComparedWithAnotherReadingAreThoseOfEach) {
  const std::vector<int32_t> tokens = some_tokens(60, decoder_->config().vocab_size);
  ThreadTeam team(2);
  const auto score = [&](Reading reading, std::optional<Reading> other) {
    return score_tokens(*decoder_, tokens, {1}, 25, 20, reading, other, team);
  };
  const std::vector<TokenScore> draft = score(Reading::kMxfp4W4A8, std::nullopt);
  const std::vector<TokenScore> full = score(Reading::kFull, std::nullopt);
  const std::vector<TokenScore> both = score(Reading::kMxfp4W4A8, Reading::kFull);
  ASSERT_EQ(both.size(), draft.size());
  double overlap = 0;
  for (size_t i = 0; i < both.size(); ++i) {
    EXPECT_EQ(both[i].nll, draft[i].nll);
    EXPECT_EQ(both[i].excess_nll, draft[i].nll - full[i].nll);
    EXPECT_GT(both[i].overlap, 0.0);
    EXPECT_LT(both[i].overlap, 1.0);
    EXPECT_GT(both[i].divergence, 0.0);
    overlap += both[i].overlap;
  }
  EXPECT_GT(overlap / static_cast<double>(both.size()), 0.5);
  for (const TokenScore& same : score(Reading::kFull, Reading::kFull)) {
    EXPECT_NEAR(same.overlap, 1.0, 1e-12);
    EXPECT_EQ(same.divergence, 0.0);
    EXPECT_TRUE(same.same_best);
    EXPECT_EQ(same.excess_nll, 0.0);
  }
}

TEST(Perplexity, IsThatOfTheTextsTokens) {
  const Model model = default_model({});
  std::vector<int32_t> tokens = model.encode(kText);
  const Decoder& decoder = data_of(model).decoder;
  const int32_t vocabulary = model.vocab_size();
  ThreadTeam team(2);
  const std::vector<float> logits = test::all_logits(decoder, tokens, 512, Reading::kFull, team);
  double sum = 0;
  const size_t scored = tokens.size() - 1;  // all but the beginning of the sequence
  for (size_t i = 0; i < scored; ++i) {
    sum += nll_of(logits.data() + i * static_cast<size_t>(vocabulary), vocabulary, tokens[i + 1]);
  }
  const double mean = sum / static_cast<double>(scored);
  const PerplexityResult result = measure_perplexity(model, kText);
  EXPECT_EQ(result.tokens, static_cast<int64_t>(scored));
  EXPECT_EQ(result.text_tokens, result.tokens);
  EXPECT_EQ(result.windows, 1);
  EXPECT_EQ(result.window, 1024);
  EXPECT_EQ(result.stride, 1023);
  EXPECT_EQ(result.resolved, "bf16");
  EXPECT_EQ(result.bits_per_weight, 16.0);
  EXPECT_NEAR(result.mean_nll, mean, 1e-9);
  EXPECT_NEAR(result.perplexity, std::exp(mean), 1e-6);
  EXPECT_NEAR(result.bits_per_byte, sum / std::numbers::ln2 / static_cast<double>(std::string(kText).size()),
              1e-9);
  EXPECT_GT(result.standard_error, 0.0);
}

TEST(NegativeLogLikelihoods, AreWhatThePerplexityIsMadeOf) {
  const Model model = default_model({});
  const std::vector<int32_t> tokens = model.encode(kText);
  const std::vector<double> nlls = negative_log_likelihoods(model, tokens, 2);
  ASSERT_EQ(nlls.size(), tokens.size() - 1);
  double sum = 0;
  for (const double nll : nlls) sum += nll;
  EXPECT_EQ(sum / static_cast<double>(nlls.size()), measure_perplexity(model, kText).mean_nll);
  const std::vector<ScoredToken> scored = score(model, tokens);
  for (size_t i = 0; i < nlls.size(); ++i) EXPECT_NEAR(nlls[i], -scored[i].logprob, 1e-5) << i;
  EXPECT_TRUE(negative_log_likelihoods(model, std::span(tokens).first(1)).empty());
}

TEST(NegativeLogLikelihoods, RefuseTokensThatTheModelCannotRead) {
  const Model model = default_model({});
  EXPECT_THROW(negative_log_likelihoods(model, std::vector<int32_t>(1025, 5)), Error);
  EXPECT_THROW(negative_log_likelihoods(model, std::vector<int32_t>{1, -1}), Error);
  EXPECT_THROW(negative_log_likelihoods(model, std::vector<int32_t>{1, model.vocab_size()}), Error);
}

TEST(Perplexity, TakesSpecialTokensInTheTextForText) {
  const Model model = default_model({});
  EXPECT_GT(measure_perplexity(model, "a<s>").tokens, 2);
}

TEST(Perplexity, DoesNotDependOnTheNumberOfThreads) {
  TOO_LONG_FOR_SANITIZERS();
  const Model model = default_model({"full", "mxfp4", "squeeze4"});
  std::string text;
  for (int i = 0; i < 8; ++i) text += kText;
  for (const char* reading : {"full", "mxfp4-w4a8", "squeeze4"}) {
    PerplexityOptions options;
    options.reading = reading;
    options.compare_with = "full";
    options.window = 128;
    options.stride = 50;
    options.threads = 1;
    const std::string one = bits_of(measure_perplexity(model, text, options));
    for (const int32_t threads : {2, 3}) {
      options.threads = threads;
      EXPECT_EQ(bits_of(measure_perplexity(model, text, options)), one) << reading << " " << threads;
    }
  }
}

TEST(Perplexity, OfLosslessFormatsIsThatOfBf16BitForBit) {
  const Model model = default_model({"full", "bsfp", "mxbf16"});
  const std::string bf16 = bits_of(measure_perplexity(model, kText));
  for (const char* reading : {"bsfp-full", "mxbf16-full"}) {
    PerplexityOptions options;
    options.reading = reading;
    const PerplexityResult result = measure_perplexity(model, kText, options);
    EXPECT_EQ(bits_of(result), bf16) << reading;
    EXPECT_GT(result.bits_per_weight, 12.0);
    EXPECT_LT(result.bits_per_weight, 14.0);
  }
}

TEST(Perplexity, TakesTheFirstTokensWhenAsked) {
  const Model model = default_model({});
  PerplexityOptions options;
  options.max_tokens = 10;
  const PerplexityResult result = measure_perplexity(model, kText, options);
  EXPECT_EQ(result.tokens, 10);
  EXPECT_EQ(result.text_tokens, measure_perplexity(model, kText).tokens);
}

TEST(Perplexity, OfWeightsRoundedToFewerBitsIsWorse) {
  double last = measure_perplexity(default_model({}), kText).perplexity;
  for (const int32_t bits : {3, 2}) {
    ModelOptions options;
    options.experiments.round_to_bits = bits;
    const double rounded = measure_perplexity(Model::load(test::default_model(), options), kText).perplexity;
    EXPECT_GT(rounded, last);
    last = rounded;
  }
  ModelOptions impossible;
  impossible.experiments.round_to_bits = 17;
  EXPECT_THROW(Model::load(test::default_model(), impossible), Error);
}

// The same numbers, whether another reading is one of the same model or of another one.
TEST(Perplexity, IsComparedWithThatOfAnotherModel) {
  const Model both = default_model({"full", "int4"});
  PerplexityOptions options;
  options.reading = "int4-w4a16";
  options.compare_with = "full";
  const std::string expected = bits_of(measure_perplexity(both, kText, options));
  const Model rounded = default_model({"int4"});
  const Model whole = default_model({});
  options.compare_model = &whole;
  EXPECT_EQ(bits_of(measure_perplexity(rounded, kText, options)), expected);
  options.compare_with = "";
  EXPECT_THROW(measure_perplexity(rounded, kText, options), Error);
  options.compare_with = "full";
  const test::TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "tiny");
  const Model tiny = Model::load(folder.path() / "tiny");
  options.compare_model = &tiny;
  test::expect_bad_input([&] { measure_perplexity(rounded, kText, options); }, {"4096", "256", "vocabulary"});
  const std::vector<int32_t> others = test::shuffled_vocabulary(test::default_model(), 4096, 1);
  ASSERT_EQ(others.size(), 4096u);
  test::write_with_vocabulary(test::default_model(), others, folder.path() / "other");
  const Model other = Model::load(folder.path() / "other");
  options.compare_model = &other;
  test::expect_bad_input([&] { measure_perplexity(rounded, kText, options); }, {"tokens differ"});
}

TEST(Perplexity, OfWeightsWithTheValuesOfAFormatIsNearThatOfTheFormat) {
  TOO_LONG_FOR_SANITIZERS();
  ModelOptions format;
  format.formats = {"squeeze3"};
  PerplexityOptions reading;
  reading.reading = "squeeze3";
  const double own = measure_perplexity(Model::load(test::default_model(), format), kText, reading).mean_nll;
  ModelOptions values;
  values.experiments.squeeze_to_bits = 3;
  values.formats = {"bf16"};
  const double three = measure_perplexity(Model::load(test::default_model(), values), kText).mean_nll;
  EXPECT_NEAR(three, own, 0.01);
  values.experiments.squeeze_to_bits = 2;
  EXPECT_GT(measure_perplexity(Model::load(test::default_model(), values), kText).mean_nll, three + 0.1);
  values.experiments.squeeze_to_bits = 5;
  EXPECT_THROW(Model::load(test::default_model(), values), Error);
}

TEST(Perplexity, OfADenseOnlyFormatReadsLess) {
  TOO_LONG_FOR_SANITIZERS();
  ModelOptions options;
  options.formats = {"squeeze3"};
  PerplexityOptions squeeze;
  squeeze.reading = "squeeze3";
  const double both =
      measure_perplexity(Model::load(test::default_model(), options), kText, squeeze).bits_per_weight;
  options.experiments.dense_only = true;
  const double dense =
      measure_perplexity(Model::load(test::default_model(), options), kText, squeeze).bits_per_weight;
  EXPECT_NEAR(both - dense, 0.0045 * 32, 0.005);
}

TEST(Perplexity, RefusesWhatItCannotMeasure) {
  const Model model = default_model({});
  const auto refused = [&](std::string_view text, const PerplexityOptions& options, const std::string& part) {
    try {
      measure_perplexity(model, text, options);
      ADD_FAILURE() << "nothing was thrown for: " << part;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  const auto sizes = [](int64_t window, int64_t stride, int64_t most) {
    PerplexityOptions options;
    options.window = window;
    options.stride = stride;
    options.max_tokens = most;
    return options;
  };
  refused("", {}, "empty");
  refused("caf\xe9", {}, "not valid UTF-8 at byte 3");
  refused("a", {}, "too short");
  refused(kText, sizes(0, 0, 1), "too short");
  refused(kText, sizes(1025, 0, 0), "longer than the model's context of 1024");
  refused(kText, sizes(1, 0, 0), "window of 1");
  refused(kText, sizes(-5, 0, 0), "window of -5");
  refused(kText, sizes(64, 64, 0), "stride of 64");
  refused(kText, sizes(64, -1, 0), "stride of -1");
  PerplexityOptions options;
  options.reading = "mxfp4-w4a8";
  refused(kText, options, "without weights in mxfp4");
  options.reading = "loud";
  refused(kText, options, "unknown reading \"loud\"");
  options.reading = "full";
  options.compare_with = "squeeze3";
  refused(kText, options, "without weights in squeeze3");
}

}  // namespace
}  // namespace perplexity_test
}  // namespace verbatim
