#include "support/test_data.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace verbatim::test {

namespace fs = std::filesystem;

namespace {

fs::path beside_the_project(const char* name) {
  const fs::path path = fs::path(VERBATIM_SOURCE_DIR) / ".." / "shared" / name;
  return fs::exists(path) ? path : fs::path();
}

}  // namespace

fs::path shared_data() {
  return beside_the_project("data");
}

fs::path shared_models() {
  return beside_the_project("models");
}

fs::path default_model() {
  return fs::path(VERBATIM_SOURCE_DIR) / "models" / "target";
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

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (fs::temp_directory_path() / "verbatim-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path TemporaryFolder::write(const std::string& name, const std::string& contents) const {
  const fs::path file = path_ / name;
  std::ofstream(file, std::ios::binary) << contents;
  return file;
}

}  // namespace verbatim::test
