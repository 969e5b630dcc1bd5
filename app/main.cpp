#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>

#include "command_line.h"
#include "fail.h"
#include "help_format.h"
#include "interrupt.h"
#include "program.h"
#include "progress.h"
#include "strict_options.h"
#include "text_io.h"
#include "verbatim/verbatim.h"

namespace {

using verbatim::ErrorKind;
using verbatim::app::kProgram;

constexpr size_t kLongestEcho = 80;

int report(const std::string& message, ErrorKind kind) {
  verbatim::app::end_progress();
  verbatim::app::say("{}: {}\n", kProgram.name, verbatim::app::one_line(message));
  return static_cast<int>(kind);
}

int report_usage(const CLI::App& program, const std::string& message) {
  std::string command = kProgram.name;
  const CLI::App* at = &program;
  for (auto chosen = at->get_subcommands(); !chosen.empty(); chosen = at->get_subcommands()) {
    at = chosen.front();
    command += " " + at->get_name();
  }
  if (at->get_require_subcommand_min() == 0) {
    return report(fmt::format("{} (`{} --help` shows how it is used)", message, command), ErrorKind::kUsage);
  }
  const auto unknown = program.remaining(true);
  return report(fmt::format("{} (`{} --help` lists what there is)",
                            unknown.empty() ? "a command is missing"
                                            : fmt::format("there is no command or option {}",
                                                          verbatim::shown(unknown.front(), kLongestEcho)),
                            command),
                ErrorKind::kUsage);
}

int run(int argc, char** argv) {
  CLI::App program(kProgram.description, kProgram.name);
  program.formatter(std::make_shared<verbatim::app::HelpFormat>());
  program.set_help_flag("-h,--help", "Show this and exit");
  program.set_version_flag("--version", fmt::format("{} {}", kProgram.name, verbatim::version()),
                           "Show the version and exit");
  program.require_subcommand(1);
  program.get_formatter()->label("SUBCOMMAND", "COMMAND");
  program.footer(kProgram.footer);
  kProgram.add_commands(verbatim::app::Command(&program));
  verbatim::app::make_strict(program);
  verbatim::app::check_lists(program, argc, argv);
  try {
    program.parse(argc, argv);
  } catch (const verbatim::app::Exit& exit) {
    return exit.code;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return report_usage(program, error.what());
    program.exit(error);  // --help, --version
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    verbatim::app::fail(ErrorKind::kMachine, "cannot write to standard output: is the disk full?");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  verbatim::app::fill_standard_streams();
  verbatim::app::prepare_signals();
  try {
    return run(argc, argv);
  } catch (const verbatim::Error& error) {
    return report(error.what(), error.kind());
  } catch (const std::bad_alloc&) {
    return report("out of memory: free some, or use a smaller model or context", ErrorKind::kMachine);
  } catch (const std::filesystem::filesystem_error& error) {
    return report(fmt::format("cannot use {}: {}", error.path1().string(), error.code().message()),
                  ErrorKind::kBadInput);
  } catch (const std::exception& error) {
    return report(error.what(), ErrorKind::kBadInput);
  }
}
