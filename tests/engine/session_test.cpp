#include <gtest/gtest.h>

#include <cmath>

#include "kv/dense.h"
#include "support/engine_support.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace session_test {
namespace {

const Model& model() {
  static const Model loaded = test::load_model(test::default_model());
  return loaded;
}

GenerateOptions tokens(int64_t count) {
  GenerateOptions options;
  options.max_tokens = count;
  return options;
}

const char* const kPrompt = "def fibonacci(n):\n    \"\"\"";

TEST(Session, GeneratesAsManyTokensAsAsked) {
  for (const char* recipe : {"plain", "ml-specqd"}) {
    for (const int64_t count : {0, 1, 2, 3, 17}) {
      Session session(model(), 64, 1);
      GenerateOptions options = tokens(count);
      options.ignore_eos = true;
      const GenerateResult result = session.generate(model().encode(kPrompt), options, load_recipe(recipe));
      EXPECT_EQ(static_cast<int64_t>(result.tokens.size()), count) << recipe;
      EXPECT_EQ(result.stats.generated_tokens, count);
      EXPECT_EQ(result.text, model().decode(result.tokens));
    }
  }
}

TEST(Session, StreamedPiecesAreTheText) {
  Session session(model(), 0, 2);
  std::string streamed;
  const GenerateResult result =
      session.generate(model().encode(kPrompt), tokens(40), load_recipe("ml-specqd"),
                       [&](std::string_view piece) { streamed += piece; });
  EXPECT_EQ(streamed, result.text);
  EXPECT_FALSE(streamed.empty());
}

TEST(Session, StopsBeforeAStopStringAlikeWithEveryRecipe) {
  Session whole_session(model(), 0, 1);
  const std::string whole =
      whole_session.generate(model().encode(kPrompt), tokens(40), load_recipe("plain")).text;
  const std::string stop = whole.substr(whole.size() / 2, 7);
  for (const char* recipe : {"plain", "ml-specqd"}) {
    Session session(model(), 0, 1);
    GenerateOptions options = tokens(40);
    options.stop = {"not to be found", stop};
    std::string streamed;
    const GenerateResult result = session.generate(model().encode(kPrompt), options, load_recipe(recipe),
                                                   [&](std::string_view piece) { streamed += piece; });
    EXPECT_EQ(result.text, whole.substr(0, whole.find(stop)));
    EXPECT_EQ(streamed, result.text);
    EXPECT_EQ(result.stats.finish, FinishReason::kStopString);
  }
}

TEST(Session, StopsAtAStopTokenAlikeWithEveryRecipe) {
  Session whole_session(model(), 0, 1);
  const GenerateResult whole =
      whole_session.generate(model().encode(kPrompt), tokens(40), load_recipe("plain"));
  const int32_t stop = whole.tokens[11];
  const auto first = std::find(whole.tokens.begin(), whole.tokens.end(), stop);
  for (const char* recipe : {"plain", "ml-specqd"}) {
    Session session(model(), 0, 1);
    GenerateOptions options = tokens(40);
    options.stop_tokens = {stop};
    const GenerateResult result = session.generate(model().encode(kPrompt), options, load_recipe(recipe));
    EXPECT_EQ(result.tokens, std::vector<int32_t>(whole.tokens.begin(), first + 1));
    EXPECT_EQ(result.stats.finish, FinishReason::kEndOfSequence);
    EXPECT_EQ(session.tokens().back(), stop);
  }
}

TEST(Session, CancellingKeepsWhatWasSaid) {
  Session session(model(), 0, 1);
  int pieces = 0;
  GenerateOptions options = tokens(100);
  options.cancelled = [&] { return pieces >= 3; };
  const GenerateResult result = session.generate(model().encode(kPrompt), options, load_recipe("ml-specqd"),
                                                 [&](std::string_view) { ++pieces; });
  EXPECT_EQ(result.stats.finish, FinishReason::kCancelled);
  EXPECT_EQ(pieces, 3);
  EXPECT_LT(result.tokens.size(), 100u);
}

TEST(Session, ATruncatedSequenceGoesOnWithoutANewPrompt) {
  const std::vector<int32_t> prompt = model().encode(kPrompt);
  for (const char* recipe : {"plain", "ml-specqd"}) {
    Session session(model(), 0, 2);
    const GenerateResult first = session.generate(prompt, tokens(20), load_recipe(recipe));
    session.truncate(static_cast<int64_t>(prompt.size()));
    EXPECT_EQ(session.generate({}, tokens(20), load_recipe(recipe)).tokens, first.tokens);
  }
}

// Rows see NaN only where they may look: a token whose embedding is NaN must not reach the rows before it.
TEST(Session, RowsThatGoBadDoNotReachTheRowsBeforeThem) {
  const test::TemporaryFolder folder;
  test::TinyModelOptions options;
  options.dtype = DType::kF32;
  options.hidden_size = 40;
  test::write_tiny_llama(folder.path() / "model", options);
  std::vector<test::NamedTensor> tensors = test::tiny_tensors(options);
  for (test::NamedTensor& tensor : tensors) {
    if (tensor.name != "model.embed_tokens.weight") continue;
    for (int32_t i = 0; i < 40; ++i) tensor.values[static_cast<size_t>(77 * 40 + i)] = NAN;
  }
  folder.write("model/model.safetensors", test::safetensors_file(tensors, DType::kF32));
  const Decoder decoder = test::load_decoder(folder.path() / "model");
  ThreadTeam team(2);
  const std::vector<float> together = test::all_logits(decoder, {1, 2, 3, 77}, 4, Reading::kFull, team);
  const std::vector<float> alone = test::all_logits(decoder, {1, 2, 3}, 1, Reading::kFull, team);
  EXPECT_EQ(std::vector<float>(together.begin(), together.begin() + 3 * 256), alone);
  EXPECT_TRUE(std::isnan(together.back()));
  // A row of the same workspace that was bad in one pass is good in the next.
  DenseCache cache(decoder.cache_shape(), 16);
  KvCache* const caches[] = {&cache};
  DecoderWorkspace workspace;
  const Row bad{0, 0, 77};
  decoder.forward({&bad, 1}, Reading::kFull, caches, 0, workspace, team);
  const Row good{0, 0, 1};
  const Matrix<const float> logits = decoder.forward({&good, 1}, Reading::kFull, caches, 0, workspace, team);
  EXPECT_EQ(std::vector<float>(logits.row(0), logits.row(0) + 256),
            std::vector<float>(alone.begin(), alone.begin() + 256));
}

TEST(Session, CanBeCancelledBetweenThePassesOfAPrompt) {
  Session session(model(), 0, 1);
  GenerateOptions options = tokens(10);
  options.prefill_chunk = 4;
  int asked = 0;
  options.cancelled = [&] { return ++asked > 2; };
  const std::vector<int32_t> prompt = model().encode(kPrompt);
  const GenerateResult result = session.generate(prompt, options, load_recipe("plain"));
  EXPECT_EQ(result.stats.finish, FinishReason::kCancelled);
  EXPECT_EQ(result.stats.prompt_tokens, 8);
  EXPECT_TRUE(result.tokens.empty());
  // The rest of the prompt is evaluated when the session goes on.
  options.cancelled = {};
  Session fresh(model(), 0, 1);
  EXPECT_EQ(session.generate({}, options, load_recipe("plain")).tokens,
            fresh.generate(prompt, options, load_recipe("plain")).tokens);
}

TEST(Session, SaysHowFarAPromptIs) {
  Session session(model(), 0, 1);
  GenerateOptions options = tokens(3);
  options.prefill_chunk = 4;
  std::vector<double> fractions;
  options.prefill_progress = [&](double fraction) { fractions.push_back(fraction); };
  const std::vector<int32_t> prompt = model().encode(kPrompt);
  session.generate(prompt, options, load_recipe("ml-specqd"));
  const size_t passes = (prompt.size() + 3) / 4;
  ASSERT_EQ(fractions.size(), 1 + passes);
  for (size_t i = 0; i < passes; ++i) {
    EXPECT_DOUBLE_EQ(fractions[i], 4.0 * static_cast<double>(i) / static_cast<double>(prompt.size()));
  }
  EXPECT_EQ(fractions.back(), 1.0);
  // Of a prompt that follows another only what is new counts.
  fractions.clear();
  session.generate({5}, options, load_recipe("ml-specqd"));
  EXPECT_EQ(fractions, (std::vector<double>{0.0, 1.0}));
}

TEST(Session, RefusesAContextThatDoesNotFitIntoMemory) {
  const test::TemporaryFolder folder;
  test::TinyModelOptions options;  // 1 TiB of keys and values, more than machines have
  options.hidden_size = 32;
  options.intermediate_size = 32;
  options.layers = 16;
  options.kv_heads = 8;
  options.heads = 8;
  options.head_dim = 128;
  options.context = 1 << 24;
  test::write_tiny_llama(folder.path() / "model", options);
  const Model large = test::load_model(folder.path() / "model");
  const auto expect_refused = [&](const char* recipe, size_t prompt, const std::string& gibibytes) {
    Session session(large, 0, 1);
    try {
      session.generate(std::vector<int32_t>(prompt, 3), tokens(1 << 24), load_recipe(recipe));
      FAIL() << "no error for " << recipe;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kMachine);
      EXPECT_NE(std::string(error.what()).find("a context of 16777216 tokens takes " + gibibytes),
                std::string::npos)
          << recipe << ": " << error.what();
    }
    EXPECT_TRUE(session.tokens().empty());
  };
  expect_refused("plain", 3, "1024");
  // 8.25 bits for each number in place of 16, and the ring.
  expect_refused("quantspec", 3, "528.");
  // A quarter of the prompt is copied: 65536 positions, 4 GiB.
  expect_refused("snapkv", 1 << 18, "1028.");
}

TEST(Session, ContinuingFromTheCacheIsTheSameAsStartingOver) {
  for (const char* recipe : {"plain", "ml-specqd"}) {
    Session session(model(), 0, 2);
    const GenerateResult first = session.generate(model().encode(kPrompt), tokens(15), load_recipe(recipe));
    session.truncate(static_cast<int64_t>(session.tokens().size()) - 4);
    std::vector<int32_t> all = session.tokens();
    const std::vector<int32_t> more = model().encode("\n\nclass Parser:", false);
    const GenerateResult second = session.generate(more, tokens(30), load_recipe(recipe));
    EXPECT_LE(second.stats.prompt_tokens, static_cast<int64_t>(more.size()) + 1);

    all.insert(all.end(), more.begin(), more.end());
    Session fresh(model(), 0, 1);
    EXPECT_EQ(fresh.generate(all, tokens(30), load_recipe("plain")).tokens, second.tokens);
  }
}

TEST(Session, EndsWhenTheContextIsFull) {
  for (const char* recipe : {"plain", "ml-specqd"}) {
    const std::vector<int32_t> prompt = model().encode(kPrompt);
    Session session(model(), static_cast<int64_t>(prompt.size()) + 10, 1);
    GenerateOptions options = tokens(100);
    options.ignore_eos = true;
    const GenerateResult result = session.generate(prompt, options, load_recipe(recipe));
    EXPECT_EQ(result.tokens.size(), 10u);
    EXPECT_EQ(result.stats.finish, FinishReason::kContext);
  }
}

TEST(Session, TheWholeContextCanBeUsed) {
  const std::vector<int32_t> ids =
      model().encode(test::read_file(test::default_model() / "tokenizer_config.json"));
  std::vector<int32_t> prompt;
  while (prompt.size() < 1010) prompt.push_back(ids[prompt.size() % ids.size()]);
  std::vector<int32_t> expected;
  for (const char* recipe : {"plain", "ml-specqd"}) {
    Session session(model(), 0, 2);
    GenerateOptions options = tokens(100);
    options.ignore_eos = true;
    const GenerateResult result = session.generate(prompt, options, load_recipe(recipe));
    EXPECT_EQ(result.tokens.size(), 14u);
    EXPECT_EQ(result.stats.finish, FinishReason::kContext);
    if (expected.empty()) expected = result.tokens;
    EXPECT_EQ(result.tokens, expected);
  }
}

TEST(Session, RefusesPromptsThatAreEmptyOrDoNotFit) {
  Session session(model(), 32, 1);
  const std::vector<int32_t> long_prompt(32, 5);
  for (const std::vector<int32_t>& prompt :
       {std::vector<int32_t>{}, long_prompt, std::vector<int32_t>{5000}}) {
    try {
      session.generate(prompt, tokens(4), load_recipe("plain"));
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBadInput) << error.what();
    }
    EXPECT_TRUE(session.tokens().empty()) << "a refused prompt must not stay in the sequence";
  }
}

TEST(Session, ARecipeWithoutItsWeightsIsAUsageError) {
  const Model plain_only = Model::load(test::default_model());
  Session session(plain_only, 32, 1);
  EXPECT_THROW(session.generate(plain_only.encode("x"), tokens(4), load_recipe("ml-specqd")), Error);
}

TEST(Session, EverySamplingSettingIsLossless) {
  struct Setting {
    SamplingOptions sampling;
  };
  std::vector<SamplingOptions> settings(5);
  settings[0] = {.repetition_penalty = 1.3f};
  settings[1] = {.temperature = 1.2f, .top_k = 40, .seed = 1};
  settings[2] = {.temperature = 0.9f, .top_p = 0.9f, .seed = 2};
  settings[3] = {.temperature = 1.0f, .min_p = 0.05f, .seed = 3};
  settings[4] = {.repetition_penalty = 1.1f,
                 .temperature = 0.7f,
                 .top_k = 50,
                 .top_p = 0.95f,
                 .min_p = 0.01f,
                 .seed = 4};
  for (const SamplingOptions& sampling : settings) {
    GenerateOptions options = tokens(40);
    options.sampling = sampling;
    options.ignore_eos = true;
    Session plain(model(), 0, 1);
    Session speculative(model(), 0, 2);
    EXPECT_EQ(plain.generate(model().encode(kPrompt), options, load_recipe("plain")).tokens,
              speculative.generate(model().encode(kPrompt), options, load_recipe("ml-specqd")).tokens);
  }
}

TEST(Session, StatisticsAddUp) {
  Session session(model(), 0, 1);
  GenerateOptions options = tokens(50);
  options.ignore_eos = true;
  const Stats stats = session.generate(model().encode(kPrompt), options, load_recipe("ml-specqd")).stats;
  EXPECT_EQ(stats.generated_tokens, 50);
  EXPECT_EQ(stats.draft_passes, stats.drafted);
  // One token comes from the prompt; every pass of the target adds one to the drafts it accepts.
  EXPECT_EQ(stats.generated_tokens, 1 + stats.accepted + stats.target_passes);
  EXPECT_LE(stats.accepted, stats.drafted);
  EXPECT_GT(stats.seconds_decode, 0.0);
  EXPECT_GE(stats.seconds_decode, stats.seconds_draft + stats.seconds_verify);
}

TEST(PublicModel, AGreedyStoryIsTheOneThatAnotherEngineTold) {
  NEEDS_PUBLIC_DATA();
  const auto folder = test::public_data() / "models" / "stories260K";
  const Model story = test::load_model(folder / "stories260K-f32.gguf");
  std::string expected = test::read_file(folder / "greedy_once_upon_a_time.txt");
  expected.resize(expected.find_last_not_of('\n') + 1);
  const std::string prompt = "Once upon a time";
  ASSERT_TRUE(expected.starts_with(" " + prompt));
  for (const char* recipe : {"plain", "ml-specqd"}) {
    Session session(story, 0, 2);
    EXPECT_EQ(" " + prompt + session.generate(story.encode(prompt), tokens(100), load_recipe(recipe)).text,
              expected);
  }
}

TEST(Model, NanWeightsAreAWarning) {
  const test::TemporaryFolder folder;
  test::TinyModelOptions options;
  options.nan_weight = true;
  test::write_tiny_llama(folder.path() / "model", options);
  const Model loaded = Model::load(folder.path() / "model");
  ASSERT_EQ(loaded.warnings().size(), 1u);
  EXPECT_NE(loaded.warnings()[0].find("down_proj"), std::string::npos) << loaded.warnings()[0];
  EXPECT_EQ(loaded.warnings()[0].find('\n'), std::string::npos);
}

}  // namespace
}  // namespace session_test
}  // namespace verbatim
