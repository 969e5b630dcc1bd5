#include <fmt/core.h>

#include <exception>
#include <new>

#include "app_support.h"
#include "base/cpu.h"
#include "commands.h"
#include "verbatim/verbatim.h"

namespace {

constexpr int kInterrupted = 130;

int run(int argc, char** argv) {
  CLI::App program("Verbatim runs language models faster without changing a byte of what they say.",
                   "verbatim");
  program.set_version_flag("--version", fmt::format("verbatim {}", verbatim::version()));
  program.require_subcommand(1);
  program.footer(
      "MODEL is a directory in Hugging Face layout or a .gguf file.\n"
      "VERBATIM_ISA=scalar|avx2|avx512|amx forces a lower instruction set than the machine's best.\n"
      "`verbatim COMMAND --help` shows a command's options and examples.");
  verbatim::app::add_generate(program);
  verbatim::app::add_chat(program);
  verbatim::app::add_inspect(program);
  verbatim::app::add_recipes(program);
  verbatim::app::add_demo(program);
  try {
    program.parse(argc, argv);
    return verbatim::app::interrupted() ? kInterrupted : 0;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.exit(error);  // --help, --version
    verbatim::app::end_progress();
    fmt::print(stderr, "verbatim: {} (`verbatim --help` shows what there is)\n", error.what());
    return static_cast<int>(verbatim::ErrorKind::kUsage);
  }
}

int report(const char* message, verbatim::ErrorKind kind) {
  verbatim::app::end_progress();
  fmt::print(stderr, "verbatim: {}\n", message);
  return static_cast<int>(kind);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const verbatim::Error& error) {
    return report(error.what(), error.kind());
  } catch (const std::bad_alloc&) {
    return report("out of memory: free some, or use a smaller model or context",
                  verbatim::ErrorKind::kMachine);
  } catch (const std::exception& error) {
    return report(error.what(), verbatim::ErrorKind::kBadInput);
  }
}
