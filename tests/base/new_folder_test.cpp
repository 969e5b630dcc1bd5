#include "base/new_folder.h"

#include <gtest/gtest.h>

#include "checkpoint/bad_input.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using test::expect_bad_input;
using test::TemporaryFolder;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  return names;
}

TEST(NewFolder, AppearsWhenItIsKept) {
  const TemporaryFolder folder;
  const fs::path target = folder.path() / "new";
  const fs::path other = folder.write("other.txt", "text");
  {
    NewFolder made(target);
    made.write("file", "contents");
    made.copy(other);
    EXPECT_EQ(made.path().parent_path(), fs::canonical(folder.path()));
    EXPECT_FALSE(fs::exists(target));
    made.keep();
  }
  EXPECT_EQ(test::read_file(target / "file"), "contents");
  EXPECT_EQ(test::read_file(target / "other.txt"), "text");
  EXPECT_EQ(names_in(folder.path()).size(), 2u);
}

TEST(NewFolder, LeavesNothingWhenItIsNotKept) {
  const TemporaryFolder folder;
  { NewFolder(folder.path() / "new").write("file", "contents"); }
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{});
}

TEST(NewFolder, TakesThePlaceOfAnEmptyOne) {
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "empty");
  fs::create_directory_symlink("empty", folder.path() / "link");
  for (const char* name : {"empty", "empty/", "link", "empty/../link/."}) {
    NewFolder made(folder.path() / name);
    made.write("file", "contents");
    made.keep();
    EXPECT_TRUE(fs::remove(folder.path() / "empty" / "file")) << name;
    EXPECT_EQ(names_in(folder.path()).size(), 2u) << name;
  }
}

TEST(NewFolder, IsRefusedWhereSomethingIs) {
  const TemporaryFolder folder;
  const auto expect_refused = [](const fs::path& path, std::initializer_list<std::string> parts) {
    expect_bad_input([&] { NewFolder made(path); }, parts);
  };
  expect_refused("", {"empty"});
  expect_refused(folder.write("notes.txt", "hello"), {"notes.txt", "no folder"});
  expect_refused(folder.path(), {folder.path().filename(), "not empty"});
  expect_refused(folder.path() / "", {"not empty"});
  expect_refused("/", {"not empty"});
  expect_refused(folder.path() / "absent" / "new", {"absent", "does not exist"});
  expect_refused(folder.path() / "notes.txt" / "new", {"cannot make the folder", "new"});
  fs::create_symlink("nowhere", folder.path() / "dangling");
  expect_refused(folder.path() / "dangling", {"dangling", "no folder"});
  EXPECT_EQ(names_in(folder.path()).size(), 2u);
}

}  // namespace
}  // namespace verbatim
