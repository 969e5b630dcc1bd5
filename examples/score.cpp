// Says how likely a model holds each text: the log-probability of every token, their sum, and what the model
// thought likeliest where it was surprised most. At last it continues the first text and shows that the
// log-probabilities which come with generated tokens are those of scoring them:
//
//   score MODEL TEXT...

#include <verbatim/verbatim.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using verbatim::Model;
using verbatim::ScoredToken;

void print(const Model& model, const char* what, int32_t token, double logprob) {
  std::printf("%-5s %10.6f  %s\n", what, logprob, model.piece(token).c_str());
}

void print(const Model& model, const std::string& text) {
  const std::vector<ScoredToken> scored = score(model, model.encode(text), {.top_logprobs = 5});
  double sum = 0;
  std::printf("text  %s\n", text.c_str());
  for (const ScoredToken& place : scored) {
    print(model, "token", place.token, place.logprob);
    sum += place.logprob;
  }
  std::printf("sum   %10.6f  %.6f for each of %zu tokens\n", sum, sum / static_cast<double>(scored.size()),
              scored.size());
  const ScoredToken& least = *std::min_element(
      scored.begin(), scored.end(), [](const auto& a, const auto& b) { return a.logprob < b.logprob; });
  print(model, "least", least.token, least.logprob);
  for (const verbatim::TokenLogprob& likely : least.top) print(model, "top", likely.token, likely.logprob);
}

/// Whether generated tokens carry the numbers, bit for bit, that scoring the same text gives.
bool agrees(const Model& model, const verbatim::Recipe& recipe, const std::string& text) {
  std::vector<int32_t> tokens = model.encode(text);
  verbatim::GenerateOptions options;
  options.max_tokens = 16;
  options.top_logprobs = 5;
  verbatim::Session session(model);
  const verbatim::GenerateResult result = session.generate(tokens, options, recipe);
  tokens.insert(tokens.end(), result.tokens.begin(), result.tokens.end());
  const std::vector<ScoredToken> scored = score(model, tokens, {.top_logprobs = 5});
  return std::equal(result.logprobs.rbegin(), result.logprobs.rend(), scored.rbegin());
}

int run(const std::string& path, const std::vector<std::string>& texts) {
  const verbatim::Recipe recipe = verbatim::load_recipe("auto");
  const Model model = Model::load(path, {.recipe = recipe.name});
  for (const std::string& text : texts) print(model, text);
  const bool same = agrees(model, recipe, texts.front());
  std::printf("log-probabilities of drafted tokens and of scored ones are %s\n",
              same ? "the same" : "different");
  return same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: score MODEL TEXT...\n");
    return 2;
  }
  try {
    return run(argv[1], {argv + 2, argv + argc});
  } catch (const verbatim::Error& error) {
    std::fprintf(stderr, "score: %s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
