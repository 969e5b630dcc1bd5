#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>

#include "fail.h"
#include "interrupt.h"
#include "program.h"
#include "progress.h"
#include "run_command.h"
#include "text_io.h"
#include "verbatim/verbatim.h"

namespace {

using verbatim::ErrorKind;
using verbatim::app::kProgram;

int report(const std::string& message, ErrorKind kind) {
  verbatim::app::end_progress();
  verbatim::app::say("{}: {}\n", kProgram.name, verbatim::app::one_line(message));
  return static_cast<int>(kind);
}

}  // namespace

int main(int argc, char** argv) {
  verbatim::app::fill_standard_streams();
  verbatim::app::prepare_signals();
  try {
    const int code = verbatim::app::run_command(argc, argv);
    if (code == 0 && (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)) {
      verbatim::app::fail(ErrorKind::kMachine, "cannot write to standard output: is the disk full?");
    }
    return code;
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
