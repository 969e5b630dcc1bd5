// Holds a conversation: every line of standard input is a message, and its reply is written as it comes into
// being. Ctrl-C ends a reply early, and so does a number of pieces of text, if one is given:
//
//   chat MODEL [PIECES]

#include <verbatim/verbatim.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <optional>
#include <string>

namespace {

volatile std::sig_atomic_t interrupted = 0;

void interrupt(int) {
  interrupted = 1;
}

/// Writes a reply as it comes, and cancels the rest after a number of pieces.
verbatim::GenerateResult stream(verbatim::TokenStream reply, long pieces) {
  long written = 0;
  while (const std::optional<verbatim::TokenStream::Piece> piece = reply.next()) {
    std::cout << piece->text << std::flush;
    if (++written >= pieces || interrupted != 0) reply.cancel();
  }
  std::cout << std::endl;
  return reply.wait();
}

void chat(const std::string& path, long pieces) {
  const verbatim::Recipe recipe = verbatim::load_recipe("auto");
  const verbatim::Model model = verbatim::Model::load(path, {.recipe = recipe.name});
  // The engine remembers the conversation so far, so that a message costs its own tokens alone.
  verbatim::Engine engine(model);
  verbatim::Chat conversation(model);
  for (std::string line; std::getline(std::cin, line);) {
    interrupted = 0;
    conversation.add_user(line);
    verbatim::Request request;
    request.prompt = conversation.tokens();
    request.recipe = recipe;
    request.options.max_tokens = 400;
    conversation.add_stops(request.options);
    const verbatim::GenerateResult result = stream(engine.submit(request), pieces);
    conversation.add_reply(result);
    std::fprintf(stderr, "%s after %zu tokens\n", finish_reason_name(result.stats.finish).data(),
                 result.tokens.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: chat MODEL [PIECES]\n");
    return 2;
  }
  std::signal(SIGINT, interrupt);
  try {
    chat(argv[1], argc == 3 ? std::strtol(argv[2], nullptr, 10) : std::numeric_limits<long>::max());
    return 0;
  } catch (const verbatim::Error& error) {
    std::fprintf(stderr, "chat: %s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
