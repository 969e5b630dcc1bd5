#include "support/test_data.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace verbatim::test {

namespace fs = std::filesystem;

fs::path public_data() {
  const char* const folder = std::getenv("VERBATIM_TEST_DATA");
  if (folder == nullptr || *folder == '\0') return {};
  if (!fs::is_directory(folder)) {
    throw std::runtime_error(std::string("VERBATIM_TEST_DATA names no folder: ") + folder);
  }
  return folder;
}

fs::path default_model() {
  return fs::path(VERBATIM_SOURCE_DIR) / "models" / "target";
}

fs::path draft_model() {
  return fs::path(VERBATIM_SOURCE_DIR) / "models" / "draft";
}

fs::path reference_logits() {
  return fs::path(VERBATIM_SOURCE_DIR) / "models" / "reference";
}

fs::path own_data() {
  return fs::path(VERBATIM_SOURCE_DIR) / "tests" / "data";
}

fs::path program() {
  return VERBATIM_PROGRAM;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::ostringstream contents;
  contents << file.rdbuf();
  return contents.str();
}

TemporaryFolder::TemporaryFolder() : process_(getpid()) {
  std::string pattern = (fs::temp_directory_path() / "verbatim-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  if (process_ != getpid()) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path TemporaryFolder::write(const std::string& name, const std::string& contents) const {
  const fs::path file = path_ / name;
  std::ofstream(file, std::ios::binary) << contents;
  return file;
}

}  // namespace verbatim::test
