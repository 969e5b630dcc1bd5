#include "engine/model_access.h"
#include "support/batches.h"

namespace verbatim {
namespace {

using namespace test;  // NOLINT: the support of this very test

const Recipe kPlainRecipe = load_recipe("plain");

/// A request for a text that does not end soon.
Request endless(const Model& model) {
  Request request{.prompt = model.encode("def f(x):"), .options = {}, .recipe = kPlainRecipe};
  request.options.max_tokens = 900;
  request.options.ignore_eos = true;
  return request;
}

TEST(Engine, AnswersAsASessionDoes) {
  const Pair& pair = default_pair({"full", "mxfp4"});
  const std::vector<Asked> asked = many_requests(pair.target, 6, 24);
  Engine engine(pair.target, {.max_batch = 1, .capacity = 512, .threads = 2});
  for (const Asked& one : asked) {
    const GenerateResult result = engine.generate(one.request);
    EXPECT_EQ(result.tokens, one.alone.tokens);
    EXPECT_EQ(result.text, one.alone.text);
    EXPECT_EQ(result.stats.finish, one.alone.stats.finish);
  }
}

TEST(Engine, ABatchChangesNoByteOfAnyAnswer) {
  TOO_LONG_FOR_SANITIZERS();
  const Pair& pair = default_pair({"full", "mxfp4"});
  const std::vector<Asked> asked = many_requests(pair.target, 16, 20);
  for (const char* const name : {"plain", "ml-specqd", "auto"}) {
    const Recipe recipe = load_recipe(name);
    for (const bool weigh_drafts : {false, true}) {
      if (weigh_drafts && recipe.plain()) continue;
      BatchRun run{.max_batch = 8, .weigh_drafts = weigh_drafts, .seed = 3};
      expect_answers_alone(pair, asked, recipe, run);
      if (HasFatalFailure()) return;
      EXPECT_EQ(run.stats.preemptions, 0);
      if (recipe.name == "ml-specqd" && !weigh_drafts) {
        EXPECT_GT(run.stats.drafts.count, 0);
      }
    }
  }
}

TEST(Engine, WhoLosesMemoryAnswersTheSame) {
  TOO_LONG_FOR_SANITIZERS();
  const Pair& pair = default_pair({"full", "mxfp4"});
  const std::vector<Asked> asked = many_requests(pair.target, 10, 160, kPlainRecipe, 90);
  for (const char* const name : {"plain", "ml-specqd"}) {
    const Recipe recipe = load_recipe(name);
    for (const bool weigh_drafts : {false, true}) {
      if (weigh_drafts && recipe.plain()) continue;
      BatchRun run{.max_batch = 8, .cache_positions = 384, .weigh_drafts = weigh_drafts, .seed = 4};
      expect_answers_alone(pair, asked, recipe, run);
      if (HasFatalFailure()) return;
      EXPECT_GT(run.stats.preemptions, 0) << name;
    }
  }
}

// Which drafts pay depends on what passes take on the machine: BatchPace's tests decide it from made-up
// costs. Here the answers must be the same whether drafts are weighed or not, and all are made if they are
// not.
TEST(Engine, AnswersTheSameWhetherDraftsAreWeighedOrAllMade) {
  const Pair& pair = default_pair({"full", "mxfp4"});
  Recipe recipe = load_recipe("early-exit");
  recipe.levels.front().layers = 1;
  recipe.levels.front().threshold = 0.0f;
  const std::vector<Asked> asked = many_requests(pair.target, 4, 60);
  const auto drafts = [&](bool weigh_drafts) {
    BatchRun run{.max_batch = 4, .weigh_drafts = weigh_drafts, .seed = 6};
    expect_answers_alone(pair, asked, recipe, run);
    return run.stats.drafts.count;
  };
  EXPECT_GT(drafts(false), 40);
  drafts(true);
}

TEST(Engine, RemembersBeginningsWithoutATrace) {
  TOO_LONG_FOR_SANITIZERS();
  const Pair& pair = default_pair({"full", "mxfp4"});
  std::vector<Asked> asked = many_requests(pair.target, 8, 12);
  // All begin with the same 300 tokens.
  std::string text;
  while (pair.target.encode(text).size() < 300) text += "import os\nfrom sys import argv, path\n";
  const std::vector<int32_t> beginning = pair.target.encode(text);
  for (Asked& one : asked) {
    one.request.prompt.insert(one.request.prompt.begin(), beginning.begin(), beginning.end());
    one.ask_alone(pair.target);
  }
  for (const bool prompt_cache : {false, true}) {
    BatchRun run{.max_batch = 4, .prompt_cache = prompt_cache, .seed = 5};
    expect_answers_alone(pair, asked, kPlainRecipe, run);
    if (HasFatalFailure()) return;
    EXPECT_EQ(run.stats.prompt_tokens_remembered > 0, prompt_cache);
  }
}

TEST(Engine, StreamsWhatItAnswers) {
  const Pair& pair = default_pair({"full", "mxfp4"});
  Engine engine(pair.target, {.max_batch = 2, .capacity = 256, .threads = 1});
  std::vector<TokenStream> streams;
  for (const char* const prompt : {"def f(x):", "import numpy as"}) {
    Request request{.prompt = pair.target.encode(prompt), .options = {}, .recipe = load_recipe("ml-specqd")};
    request.options.max_tokens = 30;
    streams.push_back(engine.submit(request));
  }
  for (TokenStream& stream : streams) {
    std::string text;
    std::vector<int32_t> tokens;
    while (const auto piece = stream.next()) {
      text += piece->text;
      tokens.insert(tokens.end(), piece->tokens.begin(), piece->tokens.end());
    }
    EXPECT_TRUE(stream.done());
    const GenerateResult result = stream.wait();
    EXPECT_EQ(text, result.text);
    EXPECT_EQ(tokens, result.tokens);
    EXPECT_EQ(tokens.size(), 30U);
  }
}

TEST(Engine, EndsWhatIsCancelledOrLate) {
  const Pair& pair = default_pair({"full", "mxfp4"});
  Engine engine(pair.target, {.max_batch = 2, .threads = 1});
  Request request = endless(pair.target);
  std::vector<TokenStream> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(engine.submit(request));  // two of them wait
  request.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  streams.push_back(engine.submit(request));
  streams[0].next();
  streams[0].cancel();
  streams[3].cancel();
  streams[1].cancel();
  const GenerateResult begun = streams[0].wait();
  EXPECT_EQ(begun.stats.finish, FinishReason::kCancelled);
  EXPECT_LT(begun.tokens.size(), 900U);
  EXPECT_GT(begun.tokens.size(), 0U);
  EXPECT_EQ(streams[3].wait().stats.finish, FinishReason::kCancelled);
  EXPECT_EQ(streams[4].wait().stats.finish, FinishReason::kDeadline);
  streams[2].cancel();
  EXPECT_EQ(streams[2].wait().stats.finish, FinishReason::kCancelled);
  EXPECT_EQ(engine.stats().running, 0);
}

TEST(Engine, CountsEveryRequestAsWaitingRunningOrFinishedAtAnyTime) {
  const Pair& pair = default_pair({"full", "mxfp4"});
  Engine engine(pair.target, {.max_batch = 3, .threads = 1});
  Request request = endless(pair.target);
  request.options.max_tokens = 1;
  std::vector<TokenStream> streams;
  for (int64_t sent = 1; sent <= 200; ++sent) {
    streams.push_back(engine.submit(request));
    if (sent % 3 == 0) streams.back().cancel();
    const EngineStats stats = engine.stats();
    ASSERT_EQ(stats.waiting + stats.running + stats.finished, sent);
  }
  while (true) {
    const EngineStats stats = engine.stats();
    ASSERT_EQ(stats.waiting + stats.running + stats.finished, 200);
    if (stats.finished == 200) break;
  }
}

TEST(Engine, GoesDownWithWorkLeft) {
  const Pair& pair = default_pair({"full", "mxfp4"});
  Request request = endless(pair.target);
  std::vector<TokenStream> streams;
  {
    Engine engine(pair.target, {.max_batch = 2, .threads = 1});
    for (int i = 0; i < 5; ++i) streams.push_back(engine.submit(request));
    streams[0].next();
  }
  for (TokenStream& stream : streams) {
    EXPECT_EQ(stream.wait().stats.finish, FinishReason::kCancelled);
  }
}

TEST(Engine, HigherPrioritiesGoFirst) {
  const Pair& pair = default_pair({"full", "mxfp4"});
  Engine engine(pair.target, {.max_batch = 1, .threads = 1});
  Request request{.prompt = pair.target.encode("def f(x):"), .options = {}, .recipe = kPlainRecipe};
  request.options.max_tokens = 4;
  std::vector<int> order;
  std::vector<TokenStream> streams;
  for (const int priority : {0, 0, 5, 0, 7}) {
    const auto i = static_cast<int>(streams.size());
    request.priority = priority;
    request.options.cancelled = [&order, i] {
      if (order.empty() || order.back() != i) order.push_back(i);
      return false;
    };
    if (i == 0) request.options.max_tokens = 200;
    streams.push_back(engine.submit(request));
    if (i == 0) streams[0].next();
    request.options.max_tokens = 4;
  }
  for (TokenStream& stream : streams) stream.wait();
  EXPECT_EQ(order, (std::vector<int>{0, 4, 2, 1, 3}));
}

// VERBATIM_SOAK_REQUESTS asks for more of them, under sanitizers above all (docs/testing.md).
TEST(EngineSoak, ManyRequestsLeaveNothingBehind) {
  const char* const requests = std::getenv("VERBATIM_SOAK_REQUESTS");
  soak(requests == nullptr ? 200 : std::atoi(requests));
}

TEST(Engine, RefusesWhatItCouldNeverAnswer) {
  const Pair& pair = default_pair({"full", "mxfp4"});
  const int64_t position = DenseCache::bytes_of(data_of(pair.target).decoder.cache_shape(), 1);
  Engine engine(pair.target, {.max_batch = 2, .cache_bytes = 512 * position, .threads = 1});
  Request request{.prompt = pair.target.encode("def f(x):"), .options = {}, .recipe = kPlainRecipe};
  request.options.max_tokens = 500;
  EXPECT_THROW(engine.submit(request), Error);
  request.options.max_tokens = 100;
  EXPECT_EQ(engine.generate(request).tokens.size(), 100U);
  request.prompt.clear();
  EXPECT_THROW(engine.submit(request), Error);
  request.prompt = {-1};
  EXPECT_THROW(engine.submit(request), Error);
  request.prompt = {1};
  request.recipe = load_recipe("speq");
  EXPECT_THROW(engine.submit(request), Error);
  EXPECT_THROW(Engine(pair.target, {.max_batch = 0}), Error);
}

}  // namespace
}  // namespace verbatim
