// Asks a question, cancels the reply after a number of pieces of text, and then lets the model go on where it
// was interrupted. The reply ends up as if nobody had cancelled anything, which plain decoding confirms:
//
//   cancel MODEL QUESTION PIECES

#include <verbatim/verbatim.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr int64_t kLongestReply = 200;

void write(std::string_view piece) {
  std::fwrite(piece.data(), 1, piece.size(), stdout);
  std::fflush(stdout);
}

void report(const verbatim::GenerateResult& result) {
  std::fprintf(stderr, "%s after %zu tokens\n", finish_reason_name(result.stats.finish).data(),
               result.tokens.size());
}

int run(const std::string& path, const std::string& question, long pieces) {
  const verbatim::Recipe plain = verbatim::load_recipe("plain");
  const verbatim::Recipe recipe = verbatim::load_recipe("auto");
  const verbatim::Model model = verbatim::Model::load(path, {.recipes = {plain, recipe}});
  verbatim::Chat conversation(model);
  conversation.add_user(question);
  verbatim::GenerateOptions options;
  options.max_tokens = kLongestReply;
  conversation.add_stops(options);

  long heard = 0;
  const auto listen = [&heard](std::string_view piece) {
    write(piece);
    ++heard;
  };
  options.cancelled = [&] { return heard >= pieces; };
  verbatim::Session session(model);
  const verbatim::GenerateResult begun = session.generate(conversation.tokens(), options, recipe, listen);
  report(begun);

  // The session holds the question and what was said until now, so it goes on without another prompt.
  options.cancelled = {};
  options.max_tokens = kLongestReply - static_cast<int64_t>(begun.tokens.size());
  const verbatim::GenerateResult rest = session.generate({}, options, recipe, listen);
  write("\n");
  report(rest);

  options.max_tokens = kLongestReply;
  verbatim::Session undisturbed(model);
  const verbatim::GenerateResult whole = undisturbed.generate(conversation.tokens(), options, plain);
  report(whole);
  std::vector<int32_t> joined = begun.tokens;
  joined.insert(joined.end(), rest.tokens.begin(), rest.tokens.end());
  const bool same = joined == whole.tokens && begun.text + rest.text == whole.text;
  std::fprintf(stderr, "the two parts and the whole reply are %s\n", same ? "the same" : "different");
  return same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const long pieces = argc == 4 ? std::strtol(argv[3], nullptr, 10) : 0;
  if (pieces < 1) {
    std::fprintf(stderr, "usage: cancel MODEL QUESTION PIECES\n");
    return 2;
  }
  try {
    return run(argv[1], argv[2], pieces);
  } catch (const verbatim::Error& error) {
    std::fprintf(stderr, "cancel: %s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
