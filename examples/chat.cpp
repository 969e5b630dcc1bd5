// Holds a conversation: every line of standard input is a message, and its reply is written as it comes into
// being. Ctrl-C ends a reply early. The recipe is `auto` if none is named; no lossless one changes a byte:
//
//   chat MODEL [RECIPE]

#include <verbatim/verbatim.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>

namespace {

volatile std::sig_atomic_t interrupted = 0;

void interrupt(int) {
  interrupted = 1;
}

/// Writes a reply as it comes, until it is complete or Ctrl-C was pressed.
verbatim::GenerateResult stream(verbatim::TokenStream reply) {
  while (const std::optional<verbatim::TokenStream::Piece> piece = reply.next()) {
    std::cout << piece->text << std::flush;
    if (interrupted != 0) reply.cancel();
  }
  std::cout << std::endl;
  return reply.wait();
}

void chat(const std::string& path, const std::string& recipe_name) {
  const verbatim::Recipe recipe = verbatim::load_recipe(recipe_name);
  const verbatim::Model model = verbatim::Model::load(path, {.recipes = {recipe}});
  // The engine remembers the conversation so far, so that a message costs its own tokens alone.
  verbatim::Engine engine(model);
  verbatim::Chat conversation(model);
  for (std::string line; std::getline(std::cin, line);) {
    interrupted = 0;
    conversation.add_user(line);
    verbatim::Request request;
    request.prompt = conversation.tokens();
    request.recipe = recipe;
    request.options.max_tokens = 200;
    conversation.add_stops(request.options);
    const verbatim::GenerateResult result = stream(engine.submit(request));
    conversation.add_reply(result);
    std::fprintf(stderr, "%s after %zu tokens\n", finish_reason_name(result.stats.finish).data(),
                 result.tokens.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: chat MODEL [RECIPE]\n");
    return 2;
  }
  std::signal(SIGINT, interrupt);
  try {
    chat(argv[1], argc == 3 ? argv[2] : "auto");
    return 0;
  } catch (const verbatim::Error& error) {
    std::fprintf(stderr, "chat: %s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
