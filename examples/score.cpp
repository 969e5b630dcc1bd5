// Says how likely a model holds each text: a line with the mean log-probability of its tokens, and below it
// the token that the model expected least, with the one that it expected there. At last it continues the
// first text and shows that the log-probabilities which come with generated tokens are those of scoring them:
//
//   score MODEL TEXT...

#include <verbatim/verbatim.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace {

double mean(const std::vector<verbatim::ScoredToken>& scored) {
  double sum = 0;
  for (const verbatim::ScoredToken& token : scored) sum += token.logprob;
  return sum / static_cast<double>(scored.size());
}

void print(const verbatim::Model& model, const std::string& text) {
  const std::vector<verbatim::ScoredToken> scored = score(model, model.encode(text), {.top_logprobs = 1});
  std::printf("%.4f \"%s\"\n", mean(scored), text.c_str());
  const verbatim::ScoredToken& least = *std::min_element(
      scored.begin(), scored.end(), [](const auto& a, const auto& b) { return a.logprob < b.logprob; });
  std::printf("  least expected: \"%s\" (%.4f), likeliest there: \"%s\" (%.4f)\n",
              model.token_text(least.token).c_str(), least.logprob,
              model.token_text(least.top.front().token).c_str(), least.top.front().logprob);
}

/// Whether generated tokens carry the numbers, bit for bit, that scoring the same text gives.
bool agrees(const verbatim::Model& model, const verbatim::Recipe& recipe, const std::string& text) {
  std::vector<int32_t> tokens = model.encode(text);
  verbatim::GenerateOptions options;
  options.max_tokens = 16;
  options.top_logprobs = 1;
  verbatim::Session session(model);
  const verbatim::GenerateResult result = session.generate(tokens, options, recipe);
  tokens.insert(tokens.end(), result.tokens.begin(), result.tokens.end());
  const std::vector<verbatim::ScoredToken> scored = score(model, tokens, {.top_logprobs = 1});
  return std::equal(result.logprobs.rbegin(), result.logprobs.rend(), scored.rbegin());
}

int run(const std::string& path, const std::vector<std::string>& texts) {
  const verbatim::Recipe recipe = verbatim::load_recipe("auto");
  const verbatim::Model model = verbatim::Model::load(path, {.recipe = recipe.name});
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
