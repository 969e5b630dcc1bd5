#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <new>

#include "app_support.h"
#include "base/error.h"
#include "commands.h"
#include "help_format.h"
#include "verbatim/verbatim.h"

namespace {

using verbatim::ErrorKind;

int report(const std::string& message, ErrorKind kind) {
  verbatim::app::end_progress();
  fmt::print(stderr, "verbatim: {}\n", verbatim::app::one_line(message));
  return static_cast<int>(kind);
}

int report_usage(const CLI::App& program, const std::string& message) {
  std::string command = "verbatim";
  const CLI::App* at = &program;
  for (auto chosen = at->get_subcommands(); !chosen.empty(); chosen = at->get_subcommands()) {
    at = chosen.front();
    command += " " + at->get_name();
  }
  if (at->get_require_subcommand_min() == 0) {
    return report(fmt::format("{} (`{} --help` shows how it is used)", message, command), ErrorKind::kUsage);
  }
  const auto unknown = program.remaining(true);
  return report(
      fmt::format("{} (`{} --help` lists what there is)",
                  unknown.empty() ? "a command is missing"
                                  : fmt::format("there is no command or option {}", unknown.front()),
                  command),
      ErrorKind::kUsage);
}

int run(int argc, char** argv) {
  CLI::App program("Verbatim runs language models faster without changing a byte of what they say.",
                   "verbatim");
  program.formatter(std::make_shared<verbatim::app::HelpFormat>());
  program.set_help_flag("-h,--help", "Show this and exit");
  program.set_version_flag("--version", fmt::format("verbatim {}", verbatim::version()),
                           "Show the version and exit");
  program.require_subcommand(1);
  program.get_formatter()->label("SUBCOMMAND", "COMMAND");
  program.footer(
      "MODEL is a directory in Hugging Face layout, a .gguf or a .vbt file.\n"
      "VERBATIM_ISA=scalar|avx2|avx512|amx forces a lower instruction set than the machine's best.\n"
      "`verbatim COMMAND --help` shows a command's options and examples.\n"
      "\n"
      "Examples:\n"
      "  verbatim demo models/target\n"
      "  verbatim generate models/target -p 'def fibonacci(n):'\n"
      "  verbatim inspect models/target");
  verbatim::app::add_generate(program);
  verbatim::app::add_chat(program);
  verbatim::app::add_inspect(program);
  verbatim::app::add_recipes(program);
  verbatim::app::add_demo(program);
  verbatim::app::add_pack(program);
  verbatim::app::add_quantize(program);
  verbatim::app::add_inflate(program);
  verbatim::app::add_ngrams(program);
  verbatim::app::add_bench(program);
  verbatim::app::add_eval(program);
  for (CLI::App* const command : program.get_subcommands({})) {
    command->group("Commands");
    command->set_help_flag("-h,--help", "Show this and exit");
  }
  try {
    program.parse(argc, argv);
  } catch (const CLI::RuntimeError& error) {
    return error.get_exit_code();  // a command has said all there is to say
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return report_usage(program, error.what());
    program.exit(error);  // --help, --version
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    verbatim::fail(ErrorKind::kMachine, "cannot write to standard output: is the disk full?");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const verbatim::Error& error) {
    return report(error.what(), error.kind());
  } catch (const std::bad_alloc&) {
    return report("out of memory: free some, or use a smaller model or context", ErrorKind::kMachine);
  } catch (const std::exception& error) {
    return report(error.what(), ErrorKind::kBadInput);
  }
}
