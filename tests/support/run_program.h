#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "support/test_data.h"

namespace verbatim::test {

struct RunOptions {
  std::filesystem::path program = test::program();               ///< what to run
  std::string input;                                             ///< what it reads from standard input
  std::vector<std::pair<std::string, std::string>> environment;  ///< set beside what there is
  bool limit_memory = false;         ///< to 4 GB of addresses, except under sanitizers, which need more
  bool interrupt_on_output = false;  ///< Ctrl-C as soon as something comes out on standard output
  /// The time after which the program is killed, which fails the test; under sanitizers ten times as long.
  int seconds = 120;
};

struct RunResult {
  int exit_code = -1;  ///< 128 + the signal if one ended it
  std::string out;
  std::string err;  ///< without the lines that say that something takes long
  double seconds_after_interrupt = 0;
};

/// Runs a built program, `verbatim` unless the options name another, with these arguments as a process of its
/// own.
RunResult run_program(const std::vector<std::string>& arguments, const RunOptions& options = {});

/// Runs a built program with options and expects it to end with this exit code, nothing on standard output
/// and one line on standard error that begins with the program's name and holds all the parts.
void expect_refused_by(const RunOptions& options, const std::vector<std::string>& arguments, int exit_code,
                       const std::vector<std::string>& parts);

/// Runs the built `verbatim` program and expects it to refuse the arguments, as expect_refused_by() says.
void expect_refused(const std::vector<std::string>& arguments, int exit_code,
                    const std::vector<std::string>& parts);

/// The lines of a text; a last line without line break counts too.
std::vector<std::string> lines_of(const std::string& text);

}  // namespace verbatim::test
