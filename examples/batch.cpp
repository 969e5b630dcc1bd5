// Continues several texts at once, which share the passes of the model, and prints a line for each:
//
//   batch MODEL PROMPT...

#include <verbatim/verbatim.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

std::string in_one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

void run(const std::string& path, const std::vector<std::string>& prompts) {
  const verbatim::Recipe recipe = verbatim::load_recipe("auto");
  const verbatim::Model model = verbatim::Model::load(path, {.recipe = recipe.name});

  verbatim::EngineOptions options;
  options.capacity = 256;  // tokens per sequence, prompt and answer together
  verbatim::Engine engine(model, options);
  std::vector<verbatim::TokenStream> answers;
  for (const std::string& prompt : prompts) {
    verbatim::Request request;
    request.prompt = model.encode(prompt);
    request.options.max_tokens = 24;
    request.recipe = recipe;
    answers.push_back(engine.submit(request));
  }
  for (size_t i = 0; i < prompts.size(); ++i) {
    const verbatim::GenerateResult result = answers[i].wait();
    std::printf("%s ->%s\n", in_one_line(prompts[i]).c_str(), in_one_line(" " + result.text).c_str());
  }
  std::fprintf(stderr, "%.1f rows per pass\n",
               static_cast<double>(engine.stats().whole_model.rows) /
                   static_cast<double>(engine.stats().whole_model.count));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: batch MODEL PROMPT...\n");
    return 2;
  }
  try {
    run(argv[1], {argv + 2, argv + argc});
    return 0;
  } catch (const verbatim::Error& error) {
    std::fprintf(stderr, "batch: %s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
