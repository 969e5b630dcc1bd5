#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace verbatim::test {

/// The folder of public test data that VERBATIM_TEST_DATA names (docs/test-data.md), or an empty path where
/// that variable is not set. Throws std::runtime_error when the variable names no folder. Only suites whose
/// names begin with "Public" need these data.
std::filesystem::path public_data();
/// The default model of the repository: 25.7 million trained parameters.
std::filesystem::path default_model();
/// The draft model of the repository: 1.3 million trained parameters, with the tokenizer of the default
/// model.
std::filesystem::path draft_model();
/// The folder with the logits that another implementation computed for the models of the repository.
std::filesystem::path reference_logits();
/// The folder of prompts and texts that were written for these tests.
std::filesystem::path own_data();
/// The built `verbatim` program.
std::filesystem::path program();

/// The whole of a file. Fails the test when it cannot be read.
std::string read_file(const std::filesystem::path& path);

/// A fresh folder for one test, removed with all it holds when the object goes. A process that was forked
/// meanwhile, as GoogleTest's tests of exits do, leaves it alone when it ends.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  /// Writes a file into the folder and returns its path.
  std::filesystem::path write(const std::string& name, const std::string& contents) const;

 private:
  std::filesystem::path path_;
  pid_t process_;  // the process that made the folder
};

/// Whether the tests are built with a sanitizer, under which code takes many times as long.
#ifdef VERBATIM_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace verbatim::test

/// Skips a test that would take minutes under a sanitizer and whose code other tests run there. Builds
/// without one run it.
#define TOO_LONG_FOR_SANITIZERS() \
  if (verbatim::test::kSanitized) GTEST_SKIP() << "would take minutes under a sanitizer"

/// Skips a test of whole models on every machine path but the highest, in builds with a sanitizer. The
/// kernels of the other paths have tests of their own, which run there.
#define LOWER_PATHS_TOO_LONG_FOR_SANITIZERS(path_name)                                          \
  if (verbatim::test::kSanitized && (path_name) != verbatim::test::machine_paths().back().name) \
  GTEST_SKIP() << "would take minutes under a sanitizer"

/// Skips a test of a suite whose name begins with "Public" where VERBATIM_TEST_DATA is not set. `./test` does
/// not start such suites then.
#define NEEDS_PUBLIC_DATA() \
  if (verbatim::test::public_data().empty()) GTEST_SKIP() << "VERBATIM_TEST_DATA is not set"
