#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "command_line.h"
#include "commands.h"
#include "fail.h"
#include "text_io.h"
#include "token_list.h"
#include "verbatim/verbatim.h"

namespace verbatim::app {

namespace {

struct Options {
  std::string model;
  std::string text;
  bool text_given = false;
  std::string file;
  bool json = false;
  bool special = false;
  bool decode = false;
  bool no_bos = false;
  bool no_end = false;
};

/// A text to turn into ids, or a list of ids to turn into text, and its name in messages.
struct Input {
  std::string text;
  std::string name;
};

Input read_input(const Options& options) {
  if (options.text_given) return {options.text, "the argument"};
  const std::string file = options.file.empty() ? "-" : options.file;
  return {read_text(file), file == "-" ? "standard input" : file};
}

/// Bytes between quotation marks, as JSON writes a text, or, where they are no UTF-8, with \xNN for each that
/// is not printable ASCII.
std::string quoted(const std::string& bytes) {
  try {
    require_utf8(bytes, "the bytes");
  } catch (const Error&) {
    std::string text = "\"";
    for (const unsigned char byte : bytes) {
      const bool plain = byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
      text += plain ? std::string(1, static_cast<char>(byte)) : fmt::format("\\x{:02x}", byte);
    }
    return text + '"';
  }
  return shown_name(nlohmann::json(bytes).dump());
}

void print_table(const ModelVocabulary& vocabulary, const std::vector<int32_t>& tokens, size_t bytes) {
  std::string out;
  bool first = true;
  for (const int32_t token : tokens) {
    const std::string piece = shown_name(vocabulary.piece(token));
    if (vocabulary.is_control(token)) {
      out += fmt::format("{:>7}  {}\n", token, piece);
      continue;
    }
    out += fmt::format("{:>7}  {:<20}  {}\n", token, piece, quoted(vocabulary.token_text(token, first)));
    first = false;
  }
  write_out(out + fmt::format("{} token{}, {} byte{} of text\n", tokens.size(), tokens.size() == 1 ? "" : "s",
                              bytes, bytes == 1 ? "" : "s"));
}

void tokenize(const Options& options) {
  if (options.decode && options.json) {
    fail(ErrorKind::kUsage, "--decode prints the bytes of a text: leave out --json");
  }
  if (options.decode && options.no_bos) {
    fail(ErrorKind::kUsage, "--no-bos is for text that becomes ids: leave it out beside --decode");
  }
  if (options.decode && options.no_end) {
    fail(ErrorKind::kUsage, "--no-end is for text that becomes ids: leave it out beside --decode");
  }
  const ModelVocabulary vocabulary = ModelVocabulary::load(options.model);
  const Input input = read_input(options);
  if (options.decode) {
    write_out(vocabulary.decode(parse_token_list(input.text, input.name), options.special));
    return;
  }
  require_utf8(input.text, input.name);
  const std::vector<int32_t> tokens = vocabulary.encode(
      input.text, {.add_bos = !options.no_bos, .add_end = !options.no_end, .special = options.special});
  if (options.json) {
    write_out(fmt::format("{{\"tokens\":[{}]}}\n", fmt::join(tokens, ",")));
  } else {
    print_table(vocabulary, tokens, input.text.size());
  }
}

}  // namespace

void add_tokenize(Command program) {
  auto options = std::make_shared<Options>();
  Command command = program.add_command("tokenize", "Turn a text into token ids, or ids into the text");
  command.add_option("MODEL", options->model, "The model whose vocabulary counts; its weights are not read")
      .required();
  Option text = command.add_option("TEXT", options->text,
                                   "The text, or with --decode the list; without it standard input is read");
  Option file = command.add_option("-f,--file", options->file, "A file in place of TEXT; - is standard input")
                    .type_name("FILE");
  text.excludes(file);
  file.excludes(text);
  command.add_flag("--decode", options->decode, "Take a JSON list of ids and print the bytes of its text");
  command.add_flag("--special", options->special,
                   "Take <s> and the like for special tokens, as prompts do; with --decode show them");
  command.add_flag("--no-bos", options->no_bos,
                   "Leave out the beginning-of-text token, which comes first if it does in prompts");
  command.add_flag("--no-end", options->no_end,
                   "Leave out the tokens that end a text, as prompts do; few models have any");
  command.add_flag("--json", options->json, "Print one JSON object");
  command.footer(
      "Each line has an id, how the vocabulary spells the token, and the bytes that it adds to the text.\n"
      "A prompt of `verbatim generate` becomes the ids that --special --no-end gives.\n"
      "\n"
      "Examples:\n"
      "  verbatim tokenize models/target 'def add(a, b):'\n"
      "  verbatim tokenize models/target --file notes.txt --json\n"
      "  verbatim tokenize models/target '[1, 409, 984]' --decode\n"
      "  verbatim tokenize models/target 'import os' --json | verbatim tokenize models/target --decode");
  command.callback([options, command] {
    options->text_given = command.given("TEXT");
    tokenize(*options);
  });
}

}  // namespace verbatim::app
