#pragma once

#include <string>
#include <vector>

#include "support/run_program.h"

namespace verbatim::test {

/// Options that run the built `verbatim-bench`, which lies beside `verbatim`.
inline RunOptions bench_options(RunOptions options = {}) {
  options.seconds = 600;  // for it measures, and the machine may be busy
  options.program = program().parent_path() / "verbatim-bench";
  return options;
}

/// Runs the built `verbatim-bench` with these arguments as a process of its own.
inline RunResult run_bench(const std::vector<std::string>& arguments, const RunOptions& options = {}) {
  return run_program(arguments, bench_options(options));
}

/// Runs the built `verbatim-bench` and expects it to refuse the arguments, as expect_refused_by() says.
inline void expect_bench_refuses(const std::vector<std::string>& arguments, int exit_code,
                                 const std::vector<std::string>& parts) {
  expect_refused_by(bench_options(), arguments, exit_code, parts);
}

/// Runs the built `verbatim-bench` and expects it to refuse the arguments in one line that holds this part.
inline void expect_usage_error(const std::vector<std::string>& arguments, const std::string& part) {
  expect_bench_refuses(arguments, 2, {part});
}

}  // namespace verbatim::test
