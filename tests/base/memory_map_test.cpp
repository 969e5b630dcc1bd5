#include "base/memory_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string_view>

#include "support/test_data.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

using ::testing::HasSubstr;

void expect_bad_input(const std::filesystem::path& path, const std::string& reason) {
  try {
    const MemoryMap map(path);
    ADD_FAILURE() << path << " was mapped";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadInput);
    EXPECT_THAT(error.what(), HasSubstr(path.string()));
    EXPECT_THAT(error.what(), HasSubstr(reason));
  }
}

TEST(MemoryMap, ShowsTheBytesOfTheFile) {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder.write("data", "some bytes");
  const MemoryMap map(path);
  EXPECT_EQ(map.path(), path);
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(map.bytes().data()), map.bytes().size()),
            "some bytes");
}

TEST(MemoryMap, OutlivesTheNameOfTheFile) {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder.write("data", "x");
  const MemoryMap map(path);
  std::filesystem::remove(path);
  EXPECT_EQ(map.bytes()[0], std::byte{'x'});
}

TEST(MemoryMap, SaysWhatIsWrongWithTheFile) {
  const test::TemporaryFolder folder;
  expect_bad_input(folder.path() / "absent", "No such file");
  expect_bad_input(folder.path(), "is a folder");
  expect_bad_input(folder.write("empty", ""), "is empty");
  expect_bad_input("/dev/null", "not a regular file");
}

}  // namespace
}  // namespace verbatim
