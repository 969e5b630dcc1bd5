#include <gtest/gtest.h>

#include <cstdlib>

#include "support/test_data.h"

namespace verbatim::test {
namespace {

TEST(TemporaryFolder, GoesWithTheProcessThatMadeItAndNotWithOneThatWasForked) {
  std::filesystem::path path;
  {
    static std::optional<TemporaryFolder> folder;
    folder.emplace();
    path = folder->write("file", "text").parent_path();
    // The destructors of static objects run in the child as well.
    EXPECT_EXIT(std::exit(0), testing::ExitedWithCode(0), "");
    EXPECT_TRUE(std::filesystem::exists(path / "file"));
    folder.reset();
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace verbatim::test
