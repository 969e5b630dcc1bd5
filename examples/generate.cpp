// Continues a text twice, with drafts and without, and shows that the bytes are the same. The recipe says
// how to draft; it is `auto` if none is named:
//
//   generate MODEL PROMPT [RECIPE]

#include <verbatim/verbatim.h>

#include <cstdio>
#include <string>

namespace {

verbatim::GenerateResult generate(const verbatim::Model& model, const std::string& prompt,
                                  const verbatim::Recipe& recipe) {
  verbatim::GenerateOptions options;
  options.max_tokens = 64;
  verbatim::Session session(model);
  return session.generate(model.encode(prompt), options, recipe);
}

void report(const verbatim::Recipe& recipe, const verbatim::Stats& stats) {
  std::fprintf(stderr, "%s: %.1f tokens/s, %.2f tokens per pass\n", recipe.name.c_str(),
               stats.tokens_per_second(), stats.mean_accepted_length());
}

int run(const std::string& path, const std::string& prompt, const std::string& recipe_name) {
  const verbatim::Recipe plain = verbatim::load_recipe("plain");
  const verbatim::Recipe drafting = verbatim::load_recipe(recipe_name);
  const verbatim::Model model = verbatim::Model::load(path, {.recipes = {plain, drafting}});

  const verbatim::GenerateResult slow = generate(model, prompt, plain);
  const verbatim::GenerateResult fast = generate(model, prompt, drafting);
  report(plain, slow.stats);
  report(drafting, fast.stats);
  std::printf("%s%s\n", prompt.c_str(), fast.text.c_str());
  std::printf("the texts are %s\n", fast.text == slow.text ? "the same" : "different");
  return fast.text == slow.text ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: generate MODEL PROMPT [RECIPE]\n");
    return 2;
  }
  try {
    return run(argv[1], argv[2], argc == 4 ? argv[3] : "auto");
  } catch (const verbatim::Error& error) {
    std::fprintf(stderr, "generate: %s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
