#pragma once

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "engine/model_access.h"
#include "kv/dense.h"
#include "support/speculative_text.h"

// Many requests at once, and what each of them answers alone.

namespace verbatim::test {

/// A request and its answer in plain decoding by itself.
struct Asked {
  Request request;
  GenerateResult alone;

  void ask_alone(const Model& model, const Recipe& recipe = load_recipe("plain")) {
    Session session(model, static_cast<int64_t>(request.prompt.size()) + request.options.max_tokens, 2);
    alone = session.generate(request.prompt, request.options, recipe);
  }
};

/// Requests of mixed lengths and settings over real prompts of at most so many bytes.
inline std::vector<Asked> many_requests(const Model& model, size_t count, int64_t most_tokens,
                                        const Recipe& recipe = load_recipe("plain"),
                                        size_t most_bytes = 700) {
  const std::vector<std::string> texts = real_prompts(count, most_bytes);
  const std::vector<SamplingOptions> sampling = various_sampling();
  std::mt19937 random(17);
  std::vector<Asked> asked(count);
  for (size_t i = 0; i < count; ++i) {
    Request& request = asked[i].request;
    request.prompt = model.encode(texts[i]);
    GenerateOptions& options = request.options;
    options.sampling = sampling[i % sampling.size()];
    options.sampling.seed = i;
    options.max_tokens = 1 + static_cast<int64_t>(random() % static_cast<uint32_t>(most_tokens));
    options.ignore_eos = i % 4 != 0;
    if (i % 5 == 0) options.stop = {"\n\n", "return"};
    options.prefill_chunk = i % 3 == 0 ? 64 : 512;
    asked[i].ask_alone(model, recipe);
  }
  return asked;
}

/// How they are asked together.
struct BatchRun {
  int32_t max_batch = 32;
  int64_t cache_positions = 0;  ///< memory for so many positions; 0: enough
  bool prompt_cache = true;
  bool weigh_drafts = false;  ///< or have all there are, so that how many does not depend on the machine
  uint32_t seed = 1;          ///< of the order in which they arrive
  EngineStats stats = {};
};

/// Asks all of them in a random order, some when others are under way, and expects the answers that they give
/// alone.
inline void expect_answers_alone(const Pair& pair, const std::vector<Asked>& asked, const Recipe& recipe,
                                 BatchRun& run) {
  const int64_t position = DenseCache::bytes_of(data_of(pair.target).decoder.cache_shape(), 1);
  Engine engine(pair.target, {.max_batch = run.max_batch,
                              .cache_bytes = run.cache_positions * position,
                              .prompt_cache = run.prompt_cache,
                              .prompt_rows = 48,
                              .weigh_drafts = run.weigh_drafts,
                              .threads = 2});
  engine.set_draft_model(pair.draft);
  std::vector<size_t> order(asked.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::mt19937 random(run.seed);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<std::optional<TokenStream>> streams(asked.size());
  for (size_t n = 0; n < order.size(); ++n) {
    Request request = asked[order[n]].request;
    request.recipe = recipe;
    request.priority = static_cast<int32_t>(random() % 2);
    streams[order[n]] = engine.submit(std::move(request));
    // Wait for a word of one that came before.
    if (random() % 4 == 0) streams[order[random() % (n + 1)]]->next();
  }
  for (size_t i = 0; i < asked.size(); ++i) {
    const GenerateResult result = streams[i]->wait();
    ASSERT_EQ(result.tokens, asked[i].alone.tokens) << recipe.name << ", request " << i;
    ASSERT_EQ(result.text, asked[i].alone.text) << recipe.name << ", request " << i;
    ASSERT_EQ(result.stats.finish, asked[i].alone.stats.finish) << recipe.name << ", request " << i;
  }
  run.stats = engine.stats();
  ASSERT_EQ(run.stats.running, 0);
  ASSERT_EQ(run.stats.waiting, 0);
  ASSERT_EQ(run.stats.cache_bytes_taken, run.stats.cache_bytes_remembered);
  ASSERT_EQ(run.stats.finished, std::ssize(asked));
}

/// Many requests with random lengths, settings, stops, priorities, deadlines, recipes and cancellations, from
/// several threads, to an engine that is short of memory. All must end, for a reason that they gave, and
/// leave no page behind.
inline void soak(int requests) {
  const Pair& pair = small_pair();
  const int64_t position = DenseCache::bytes_of(data_of(pair.target).decoder.cache_shape(), 1);
  Engine engine(pair.target,
                {.max_batch = 12, .cache_bytes = 512 * position, .prompt_rows = 24, .threads = 2});
  engine.set_draft_model(pair.draft);
  const std::vector<std::string> texts = {"Once upon a time", "Lily and Tom went to the park. Lily and Tom",
                                          "The dog said", "One day, a girl named Sue"};
  std::vector<Recipe> recipes;
  for (const char* const name : {"plain", "ml-specqd", "ngram", "draft-model", "auto"}) {
    recipes.push_back(load_recipe(name));
  }
  const std::vector<SamplingOptions> sampling = various_sampling();
  std::atomic<int64_t> ended{0};
  const auto ask = [&](uint32_t seed, int count) {
    std::mt19937 random(seed);
    const auto below = [&random](uint32_t bound) { return random() % bound; };
    std::vector<std::pair<TokenStream, bool>> open;  // and whether it was cancelled
    const auto close = [&](size_t i) {
      const GenerateResult result = open[i].first.wait();
      const FinishReason reason = result.stats.finish;
      EXPECT_TRUE(reason != FinishReason::kCancelled || open[i].second);
      open.erase(open.begin() + static_cast<ptrdiff_t>(i));
      ++ended;
    };
    for (int i = 0; i < count; ++i) {
      Request request;
      std::string text;
      for (uint32_t n = 1 + below(6); n > 0; --n) text += texts[below(4)] + " ";
      request.prompt = pair.target.encode(text);
      request.options.sampling = sampling[below(static_cast<uint32_t>(sampling.size()))];
      request.options.sampling.seed = random();
      request.options.max_tokens = below(40);
      request.options.ignore_eos = below(2) == 0;
      if (below(4) == 0) request.options.stop = {"the", "."};
      if (below(3) == 0) request.options.prefill_chunk = 1 + below(40);
      request.recipe = recipes[below(static_cast<uint32_t>(recipes.size()))];
      request.priority = static_cast<int32_t>(below(3)) - 1;
      if (below(8) == 0) {
        request.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(below(50));
      }
      open.emplace_back(engine.submit(std::move(request)), false);
      if (below(3) == 0) {
        auto& [stream, cancelled] = open[below(static_cast<uint32_t>(open.size()))];
        stream.cancel();
        cancelled = true;
      }
      if (below(3) == 0) open[below(static_cast<uint32_t>(open.size()))].first.next();
      if (open.size() > 12) close(below(static_cast<uint32_t>(open.size())));
    }
    while (!open.empty()) close(0);
  };
  std::vector<std::thread> clients;
  for (uint32_t client = 0; client < 4; ++client) clients.emplace_back(ask, client + 1, requests / 4);
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(ended, requests / 4 * 4);
  const EngineStats stats = engine.stats();
  EXPECT_EQ(stats.running, 0);
  EXPECT_EQ(stats.waiting, 0);
  EXPECT_EQ(stats.finished, ended);
  EXPECT_GT(stats.preemptions, 0);
  EXPECT_EQ(stats.cache_bytes_taken, stats.cache_bytes_remembered);
}

}  // namespace verbatim::test
