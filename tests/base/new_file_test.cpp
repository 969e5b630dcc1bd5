#include "base/new_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "checkpoint/bad_input.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using test::expect_bad_input;
using test::TemporaryFolder;

int64_t entries(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

TEST(NewFile, AppearsWhenItIsKept) {
  const TemporaryFolder folder;
  const fs::path target = folder.path() / "new";
  {
    NewFile made(target);
    made.out().write("contents");
    made.out().write_at(0, std::as_bytes(std::span("CON", 3)));
    made.out().write(" and more");
    EXPECT_FALSE(fs::exists(target));
    made.keep();
  }
  EXPECT_EQ(test::read_file(target), "CONtents and more");
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(NewFile, LeavesNothingWhenItIsNotKept) {
  const TemporaryFolder folder;
  { NewFile(folder.path() / "new").out().write("contents"); }
  EXPECT_EQ(entries(folder.path()), 0);
}

TEST(NewFile, IsRefusedWhereSomethingIs) {
  const TemporaryFolder folder;
  const auto expect_refused = [](const fs::path& path, std::initializer_list<std::string> parts) {
    expect_bad_input([&] { NewFile made(path); }, parts);
  };
  expect_refused("", {"names no file"});
  expect_refused(folder.path() / "", {"names no file"});
  expect_refused(folder.write("notes.txt", "hello"), {"notes.txt", "exists already"});
  expect_refused(folder.path(), {"exists already"});
  expect_refused(folder.path() / "absent" / "new", {"absent", "does not exist"});
  fs::create_symlink("nowhere", folder.path() / "dangling");
  expect_refused(folder.path() / "dangling", {"dangling", "exists already"});
  EXPECT_EQ(entries(folder.path()), 2);
}

TEST(NewFile, NeverTakesThePlaceOfWhatCameMeanwhile) {
  const TemporaryFolder folder;
  {
    NewFile made(folder.path() / "new");
    folder.write("new", "someone else's");
    expect_bad_input([&] { made.keep(); }, {"exists already"});
  }
  EXPECT_EQ(test::read_file(folder.path() / "new"), "someone else's");
  EXPECT_EQ(entries(folder.path()), 1);
}

}  // namespace
}  // namespace verbatim
