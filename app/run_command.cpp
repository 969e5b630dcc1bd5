#include "run_command.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <string>

#include "command_line.h"
#include "fail.h"
#include "program.h"
#include "strict_options.h"
#include "verbatim/verbatim.h"
#include "version_text.h"

namespace verbatim::app {

namespace {

constexpr size_t kLongestEcho = 80;

/// Help for people: an option's name, the kind of value it takes, what it does and its default. The ranges of
/// values are left to the error messages.
class HelpFormat : public CLI::Formatter {
 public:
  HelpFormat() { column_width(32); }
  std::string make_help(const CLI::App* program, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

std::string HelpFormat::make_help(const CLI::App* program, std::string name, CLI::AppFormatMode mode) const {
  std::string help = CLI::Formatter::make_help(program, std::move(name), mode);
  // Groups of options come with two empty lines between them.
  for (size_t at = 0; (at = help.find("\n\n\n", at)) != std::string::npos;) help.erase(at, 1);
  return help;
}

std::string HelpFormat::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0 || !option->nonpositional()) return {};
  // The names of the option's checks follow the type behind a colon.
  const std::string type = option->get_type_name();
  return " " + type.substr(0, type.find(':'));
}

std::string HelpFormat::make_option_desc(const CLI::Option* option) const {
  const std::string value = option->get_default_str();
  return option->get_description() + (value.empty() ? "" : " [" + value + "]");
}

[[noreturn]] void refuse(const CLI::App& program, const std::string& message) {
  std::string command = kProgram.name;
  const CLI::App* at = &program;
  for (auto chosen = at->get_subcommands(); !chosen.empty(); chosen = at->get_subcommands()) {
    at = chosen.front();
    command += " " + at->get_name();
  }
  if (at->get_require_subcommand_min() == 0) {
    fail(ErrorKind::kUsage, "{} (`{} --help` shows how it is used)", message, command);
  }
  const auto unknown = program.remaining(true);
  if (unknown.empty())
    fail(ErrorKind::kUsage, "a command is missing (`{} --help` lists what there is)", command);
  fail(ErrorKind::kUsage, "there is no command or option {} (`{} --help` lists what there is)",
       shown(unknown.front(), kLongestEcho), command);
}

}  // namespace

int run_command(int argc, const char* const* argv) {
  CLI::App program(kProgram.description, kProgram.name);
  program.formatter(std::make_shared<HelpFormat>());
  program.set_help_flag("-h,--help", "Show this and exit");
  program.set_version_flag("--version", version_text, "Show the version and exit");
  program.require_subcommand(1);
  program.get_formatter()->label("SUBCOMMAND", "COMMAND");
  program.footer(kProgram.footer);
  kProgram.add_commands(Command(&program));
  make_strict(program);
  check_lists(program, argc, argv);
  try {
    program.parse(argc, argv);
  } catch (const Exit& exit) {
    return exit.code;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) refuse(program, error.what());
    program.exit(error);  // --help, --version
  }
  return 0;
}

}  // namespace verbatim::app
