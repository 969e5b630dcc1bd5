// Answers the lines of standard input, each with what was said before in mind, and writes the answers as they
// come into being. Ctrl-C ends an answer early; the end of the input ends the program:
//
//   chat_stream MODEL

#include <verbatim/verbatim.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>

namespace {

volatile std::sig_atomic_t interrupted = 0;

void interrupt(int) {
  interrupted = 1;
}

void chat(const std::string& path) {
  const verbatim::Recipe recipe = verbatim::load_recipe("auto");
  const verbatim::Model model = verbatim::Model::load(path, {.recipe = recipe.name});

  verbatim::GenerateOptions options;
  options.max_tokens = 40;
  options.stop = {"\nQuestion:"};
  options.cancelled = [] { return interrupted != 0; };

  // The session keeps the keys and values of what was said, so that a turn costs its own tokens alone.
  verbatim::Session session(model);
  bool first = true;
  for (std::string line; std::getline(std::cin, line); first = false) {
    interrupted = 0;
    const std::string turn = (first ? "Question: " : "\nQuestion: ") + line + "\nAnswer:";
    session.generate(model.encode(turn, first), options, recipe, [](std::string_view piece) {
      std::cout << piece << std::flush;
      return true;
    });
    std::cout << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: chat_stream MODEL\n");
    return 2;
  }
  std::signal(SIGINT, interrupt);
  try {
    chat(argv[1]);
    return 0;
  } catch (const verbatim::Error& error) {
    std::fprintf(stderr, "chat_stream: %s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
