#include "prepare/quantize_model.h"
#include "support/batches.h"
#include "verbatim/perplexity.h"

namespace verbatim {
namespace qspec_test {
namespace {

using namespace test;  // NOLINT: the support of this very test

/// The recipe drafting at every step, whatever a planner would think of it here.
Recipe always(const std::string& name) {
  Recipe recipe = load_recipe(name);
  recipe.planned = false;
  return recipe;
}

TEST(QSpec, SaysWhatItsVerificationSays) {
  const Pair& pair = default_pair({"int4"});
  const Recipe qspec = always("qspec");
  const Recipe w4a16 = load_recipe("w4a16");
  Work work;
  for (const float temperature : {0.0f, 0.7f, 1.2f}) {
    for (const char* const prompt : {"def fibonacci(n):\n    \"\"\"", "Question: What is 2 + 3?\nAnswer:"}) {
      const Asking asking{.sampling = {.temperature = temperature, .seed = 5}, .tokens = 32, .threads = 2};
      const std::vector<int32_t> tokens = pair.target.encode(prompt);
      const GenerateResult plain = generate(pair, w4a16, tokens, asking);
      expect_plain_text(pair, qspec, tokens, asking, plain, work);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(work.accepted, work.drafted / 2);
}

TEST(QSpec, SaysItInABatchToo) {
  TOO_LONG_FOR_SANITIZERS();
  const Pair& pair = default_pair({"int4"});
  const std::vector<Asked> asked = many_requests(pair.target, 12, 96, load_recipe("w4a16"), 140);
  for (const int64_t positions : {0, 384}) {
    BatchRun run{.max_batch = 8, .cache_positions = positions, .weigh_drafts = positions == 0, .seed = 9};
    expect_answers_alone(pair, asked, always("qspec"), run);
    if (HasFatalFailure()) return;
    EXPECT_EQ(run.stats.preemptions > 0, positions > 0);
  }
}

// Both schemes, with what each wants done to inputs, in batches of more rows than a tile has.
TEST(QSpec, SaysItOnQuantizedModels) {
  TOO_LONG_FOR_SANITIZERS();
  const Checkpoint checkpoint = open_checkpoint(default_model());
  const std::string text = read_file(own_data() / "text.txt").substr(0, 4000);
  for (const QuantizationScheme scheme : {QuantizationScheme::kAtom, QuantizationScheme::kQuarot}) {
    const TemporaryFolder folder;
    ThreadTeam team(2);
    QuantizeModelOptions options;
    options.scheme = scheme;
    options.calibration = default_pair({"int4"}).target.encode(text);
    ASSERT_TRUE(quantize_model(checkpoint, folder.path() / kPackedName, options, team));
    const Pair pair{load_model(folder.path(), {}), default_pair({"int4"}).draft};
    const Recipe recipe = always("qspec-" + std::string(scheme_name(scheme)));
    const std::vector<Asked> asked = many_requests(pair.target, 12, 96, load_recipe("w4a16"), 140);
    Work work;
    for (size_t i = 0; i < 3; ++i) {
      const Request& request = asked[i].request;
      const Asking asking{
          .sampling = request.options.sampling, .tokens = 32, .threads = 1 + static_cast<int32_t>(i)};
      const GenerateResult plain = generate(pair, load_recipe("w4a16"), request.prompt, asking);
      expect_plain_text(pair, recipe, request.prompt, asking, plain, work);
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(work.drafted, 0);
    EXPECT_GT(work.accepted, work.drafted / 3);
    BatchRun run{.max_batch = 12, .cache_positions = 384, .seed = 9};
    expect_answers_alone(pair, asked, recipe, run);
    if (HasFatalFailure()) return;
    EXPECT_GT(run.stats.preemptions, 0);
  }
}

// A planner may draft or not, and a batch may decline: the text is the same.
TEST(QSpec, SaysItWhenPlannedToo) {
  TOO_LONG_FOR_SANITIZERS();
  const Pair& pair = default_pair({"int4"});
  const std::vector<Asked> asked = many_requests(pair.target, 8, 24, load_recipe("w4a16"));
  BatchRun run{.max_batch = 4, .weigh_drafts = true, .seed = 10};
  expect_answers_alone(pair, asked, load_recipe("qspec"), run);
}

// Otherwise there would be nothing to recover.
TEST(QSpec, DraftsAloneAreWorse) {
  TOO_LONG_FOR_SANITIZERS();
  const Model& model = default_pair({"int4"}).target;
  const std::string text = read_file(own_data() / "text.txt").substr(0, 12000);
  const auto perplexity = [&](const char* const reading) {
    PerplexityOptions options;
    options.reading = reading;
    options.max_tokens = 2000;
    options.threads = 2;
    return measure_perplexity(model, text, options).perplexity;
  };
  const double w4a16 = perplexity("int4-w4a16");
  EXPECT_GT(perplexity("int4-w4a4"), 1.01 * w4a16);
  EXPECT_LT(perplexity("int4-w4a8"), 1.01 * w4a16);
}

// Two readings in one engine take turns.
TEST(QSpec, RunsBesideOtherReadings) {
  const Pair& pair = default_pair({"full", "int4"});
  Engine engine(pair.target, {.max_batch = 4, .capacity = 200, .threads = 2});
  const std::vector<int32_t> prompt = pair.target.encode("def fibonacci(n):");
  std::map<std::string, std::vector<int32_t>> alone;
  std::vector<std::pair<std::string, TokenStream>> streams;
  for (int round = 0; round < 2; ++round) {
    for (const char* const name : {"plain", "qspec", "w4a16", "w4a4"}) {
      Request request{.prompt = prompt, .options = {}, .recipe = load_recipe(name)};
      request.options.max_tokens = 40;
      if (round == 0) {
        Session session(pair.target, 200, 1);
        alone[name] = session.generate(prompt, request.options, request.recipe).tokens;
      }
      streams.emplace_back(name, engine.submit(request));
    }
  }
  for (auto& [name, stream] : streams) EXPECT_EQ(stream.wait().tokens, alone[name]) << name;
  EXPECT_EQ(alone["qspec"], alone["w4a16"]);
}

// What one reading wrote must not be taken for another's.
TEST(QSpec, RemembersNothingOfAnotherReading) {
  TOO_LONG_FOR_SANITIZERS();
  const Pair& pair = default_pair({"full", "int4"});
  std::string text;
  while (pair.target.encode(text).size() < 300) text += "import os\nfrom sys import argv, path\n";
  Request request{.prompt = pair.target.encode(text), .options = {}, .recipe = {}};
  request.options.max_tokens = 24;
  request.options.sampling = {.temperature = 1.0f, .seed = 3};
  Engine engine(pair.target, {.max_batch = 2, .capacity = 400, .threads = 2});
  Session session(pair.target, 400, 2);
  for (const char* const name : {"w4a4", "plain", "w4a16", "plain", "w4a4"}) {
    request.recipe = load_recipe(name);
    Session alone(pair.target, 400, 2);
    const std::vector<int32_t> tokens =
        alone.generate(request.prompt, request.options, request.recipe).tokens;
    EXPECT_EQ(engine.generate(request).tokens, tokens) << name;
    session.truncate(static_cast<int64_t>(request.prompt.size()));
    const std::vector<int32_t> rest = session.tokens().empty() ? request.prompt : std::vector<int32_t>();
    EXPECT_EQ(session.generate(rest, request.options, request.recipe).tokens, tokens) << name;
  }
  EXPECT_GT(engine.stats().prompt_tokens_remembered, 250);
}

}  // namespace
}  // namespace qspec_test
}  // namespace verbatim
