#include "base/input_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "support/test_data.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr size_t kMost = 100;

void expect_refused(const fs::path& path, const std::string& reason,
                    Readable readable = Readable::kRegularFile) {
  try {
    read_input(path, kMost, readable);
    ADD_FAILURE() << path << " was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadInput);
    EXPECT_THAT(error.what(), HasSubstr(path.string()));
    EXPECT_THAT(error.what(), HasSubstr(reason));
  }
}

fs::path make_pipe(const test::TemporaryFolder& folder) {
  fs::path path = folder.path() / "pipe";
  EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
  return path;
}

TEST(InputFile, IsReadWhole) {
  const test::TemporaryFolder folder;
  const std::string bytes("a\0b\n", 4);
  EXPECT_EQ(read_input(folder.write("file", bytes), kMost), bytes);
  EXPECT_EQ(read_input(folder.write("empty", ""), kMost), "");
  EXPECT_EQ(read_input(folder.write("full", std::string(kMost, 'x')), kMost).size(), kMost);
}

TEST(InputFile, SaysWhatIsWrongWithIt) {
  const test::TemporaryFolder folder;
  expect_refused(folder.path() / "absent", "No such file");
  expect_refused(folder.path(), "is a folder");
  expect_refused(folder.write("long", std::string(kMost + 1, 'x')), "at most 100 bytes");
  fs::create_symlink("loop", folder.path() / "loop");
  expect_refused(folder.path() / "loop", "Too many levels of symbolic links");
}

TEST(InputFile, IsARegularFileOrRefusedWithoutWaiting) {
  const test::TemporaryFolder folder;
  expect_refused(make_pipe(folder), "not a regular file");
  expect_refused("/dev/zero", "not a regular file");
  expect_refused("/dev/zero", "not a regular file", Readable::kPipeToo);
}

TEST(InputFile, MayBeAPipeWhereAPersonNamesIt) {
  const test::TemporaryFolder folder;
  const fs::path pipe = make_pipe(folder);
  std::thread writer([&] {
    const int file = open(pipe.c_str(), O_WRONLY | O_CLOEXEC);
    EXPECT_EQ(write(file, "text", 4), 4);
    close(file);
  });
  EXPECT_EQ(read_input(pipe, kMost, Readable::kPipeToo), "text");
  writer.join();
}

TEST(InputDescriptor, IsReadToItsLimitAndNoFurther) {
  const int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  EXPECT_THROW(read_descriptor(zeros, kMost, "standard input"), Error);
  close(zeros);
}

}  // namespace
}  // namespace verbatim
