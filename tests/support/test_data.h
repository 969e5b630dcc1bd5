#pragma once

#include <filesystem>
#include <string>

namespace verbatim::test {

/// The folder of real test data that lies beside the project, or an empty path where it is absent.
std::filesystem::path shared_data();
/// The folder of reference models and logits beside the project, or an empty path where it is absent.
std::filesystem::path shared_models();
/// The default model in the repository.
std::filesystem::path default_model();
/// The built `verbatim` program.
std::filesystem::path program();

/// The whole of a file. Fails the test when it cannot be read.
std::string read_file(const std::filesystem::path& path);

/// A fresh folder for one test, removed with all it holds when the object goes.
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
};

}  // namespace verbatim::test

/// Skips the test, saying so, where the real data it needs is not on this machine.
#define SKIP_WITHOUT(path) \
  if ((path).empty() || !std::filesystem::exists(path)) GTEST_SKIP() << "test data absent: " #path
