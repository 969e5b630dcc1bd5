#include <fmt/core.h>

#include <memory>
#include <optional>

#include "command_line.h"
#include "commands.h"
#include "conversation.h"
#include "describe_recipe.h"
#include "interrupt.h"
#include "line_reader.h"
#include "load_model.h"
#include "model_options.h"
#include "progress.h"
#include "stats_report.h"
#include "text_io.h"

namespace verbatim::app {

namespace {

struct Options {
  CommonOptions common;
  std::string system;
  std::string format;
  int64_t max_tokens = 512;
};

constexpr const char* kHelp =
    "/help    shows this\n"
    "/reset   forgets the conversation and begins anew\n"
    "/stats   shows how fast the last reply was and how full the context is\n"
    "/quit    leaves, as Ctrl-D does\n"
    "Ctrl-C stops a reply. A message that begins with a slash is written with two.\n";

/// What the loop over the lines works with.
struct Talk {
  Conversation conversation;
  Recipe recipe;
  std::optional<Stats> last = std::nullopt;
  bool refused = false;  ///< a line was no message and no command
};

void show_stats(const Talk& chat) {
  if (chat.last) say("last reply: {}\n", summary(*chat.last, chat.recipe));
  say("conversation: {} {}, {} of {} tokens\n", chat.conversation.turns(),
      chat.conversation.turns() == 1 ? "turn" : "turns", chat.conversation.length(),
      chat.conversation.context());
}

/// Streams the reply to stdout and ends it with a line break.
void answer(Talk& chat, std::string_view message) {
  bool line_open = false;
  const InterruptGuard guard;
  const GenerateResult result = chat.conversation.reply(message, [&](std::string_view piece) {
    write_out(piece);
    if (!piece.empty()) line_open = !piece.ends_with('\n');
  });
  end_progress();
  if (line_open || result.text.empty()) write_out("\n");
  chat.last = result.stats;
  if (result.stats.finish == FinishReason::kContext) {
    say("(the reply ends here: the context of {} tokens is full; /reset begins anew)\n",
        chat.conversation.context());
  }
}

/// Does what a line that begins with a slash asks for. Returns false to leave.
bool obey(Talk& chat, const std::string& command) {
  if (command == "/quit") return false;
  if (command == "/help") {
    say("{}", kHelp);
  } else if (command == "/stats") {
    show_stats(chat);
  } else if (command == "/reset") {
    chat.conversation.reset();
    say("(a new conversation)\n");
  } else {
    say("verbatim: there is no command {}: /help lists them\n", one_line(command));
    chat.refused = true;
  }
  return true;
}

/// Takes one line in. Returns false to leave.
bool take_line(Talk& chat, std::string_view line) {
  constexpr std::string_view kSpaces = " \t";
  const size_t begin = line.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return true;
  line = line.substr(begin, line.find_last_not_of(kSpaces) + 1 - begin);
  const bool escaped = line.starts_with("//");
  if (line.starts_with('/') && !escaped) return obey(chat, std::string(line));
  try {
    answer(chat, line.substr(escaped ? 1 : 0));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kBadInput) throw;
    const bool begun = chat.conversation.turns() > 0;
    say("verbatim: {}{}\n", one_line(error.what()), begun ? " (/reset begins anew)" : "");
    chat.refused = true;
  }
  return true;
}

void chat(const Options& options) {
  const Recipe recipe = chosen_recipe(options.common);
  std::optional<ChatFormat> format;
  if (!options.format.empty()) format = chat_format(options.format);
  const Model model = load_model(options.common.model, options.common.load_options({recipe}));
  Chat history = format ? Chat(model, *format, options.system) : Chat(model, options.system);
  const std::string format_name = history.format().name == "template" ? "model's own" : history.format().name;

  GenerateOptions generate;
  generate.sampling = options.common.sampling;
  generate.max_tokens = options.max_tokens;
  generate.cancelled = interrupted;
  generate.prefill_progress = show_reading;
  Talk chat{Conversation(model, std::move(history), generate, recipe, options.common.threads), recipe};
  if (const auto drafts = load_draft_model(options.common, recipe))
    chat.conversation.set_draft_model(*drafts);
  chat.conversation.prepare(show_measuring);
  end_progress();
  const std::string warning = lossy_warning(recipe);
  if (!warning.empty()) say("verbatim: {}\n", one_line(warning));
  LineReader reader;
  if (reader.on_terminal()) {
    say("{} in the {} format, {} tokens of context. /help lists commands, Ctrl-D leaves.\n",
        one_line(options.common.model), format_name, model.context());
  }
  while (const auto line = reader.next("> ")) {
    if (!take_line(chat, *line)) break;
  }
  // A person has read why; a script reads the exit code.
  if (chat.refused && !reader.on_terminal()) {
    throw Exit{static_cast<int>(ErrorKind::kBadInput)};
  }
}

}  // namespace

void add_chat(Command program) {
  auto options = std::make_shared<Options>();
  Command command =
      program.add_command("chat", "Talk with a model, on the terminal or line by line from a pipe");
  add_model(command, options->common);
  command.add_option("--system", options->system, "What the model is told before the conversation");
  command
      .add_option("--format", options->format,
                  "chatml, llama-3, llama-2, mistral or plain; without it the model says")
      .type_name("NAME");
  command.add_option("-n,--max-tokens", options->max_tokens, "Tokens in a reply at most")
      .show_default()
      .range(int64_t{1}, int64_t{1} << 24);
  add_decoding(command, options->common);
  command.footer(
      "In the conversation /help, /reset, /stats and /quit do what they say; Ctrl-C stops a reply.\n"
      "\n"
      "Examples:\n"
      "  verbatim chat models/target\n"
      "  verbatim chat model.gguf --system 'Answer in one sentence.' --temperature 0.7\n"
      "  printf 'What is 2 + 3?\\nAnd 4 + 5?\\n' | verbatim chat models/target -n 40");
  command.callback([options] { chat(*options); });
}

}  // namespace verbatim::app
