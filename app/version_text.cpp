#include "version_text.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "program.h"
#include "verbatim/verbatim.h"

namespace verbatim::app {

namespace {

std::string kernels() {
  try {
    const MachineReport machine = describe_machine();
    return fmt::format("{} (this machine runs {})", machine.kernels,
                       fmt::join(machine.instruction_sets, ", "));
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

std::string version_text() {
#ifdef __clang__
  const std::string compiler = fmt::format("Clang {}", __clang_version__);
#else
  const std::string compiler = fmt::format("GCC {}", __VERSION__);
#endif
  return fmt::format("{} {}\ncommit   {}\ncompiler {}\nkernels  {}", kProgram.name, version(),
                     built_from_commit(), compiler, kernels());
}

}  // namespace verbatim::app
