#include "kv/chunk_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "support/test_data.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using Outcome = ChunkFolder::Outcome;

class ChunkFolderTest : public testing::Test {
 protected:
  static Digest key(int number) { return Digest{static_cast<std::byte>(number), std::byte{1}}; }
  fs::path file(int number) const { return folder_ / (hexadecimal(key(number)) + ".chunk"); }
  static Outcome write(ChunkFolder& folder, int number, int64_t time, size_t bytes = 100) {
    const std::vector<std::byte> all(bytes, static_cast<std::byte>(number));
    return folder.write(key(number), std::span(all).first(7), std::span(all).subspan(7), time);
  }
  static bool has(const ChunkFolder& folder, int number, size_t bytes = 100) {
    std::vector<std::byte> read(bytes);
    if (folder.find(key(number), read) != Outcome::kDone) return false;
    return read == std::vector<std::byte>(bytes, static_cast<std::byte>(number));
  }
  int64_t bytes_of_all() const {
    int64_t bytes = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
      bytes += static_cast<int64_t>(entry.file_size());
    }
    return bytes;
  }

  test::TemporaryFolder parent_;
  fs::path folder_ = parent_.path() / "new" / "kept";
};

TEST_F(ChunkFolderTest, KeepsFilesForItsOwnerAlone) {
  {
    ChunkFolder folder(folder_, 1000);
    EXPECT_EQ(write(folder, 1, 50), Outcome::kDone);
    EXPECT_TRUE(has(folder, 1));
    EXPECT_FALSE(has(folder, 2));
  }
  EXPECT_EQ(fs::status(folder_).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(file(1)).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
  const ChunkFolder again(folder_, 1000);
  EXPECT_TRUE(has(again, 1));
  EXPECT_EQ(again.remove(key(1)), Outcome::kDone);
  EXPECT_FALSE(has(again, 1));
  EXPECT_EQ(again.remove(key(1)), Outcome::kDone);
  EXPECT_EQ(again.use(key(1), 5), Outcome::kAbsent);
}

TEST_F(ChunkFolderTest, DeletesWhatWasNotUsedForLongest) {
  ChunkFolder folder(folder_, 500);
  for (int number = 1; number <= 5; ++number) ASSERT_EQ(write(folder, number, number), Outcome::kDone);
  EXPECT_EQ(folder.use(key(1), 9), Outcome::kDone);
  for (int number = 6; number <= 7; ++number) {
    ASSERT_EQ(write(folder, number, 10 + number), Outcome::kDone);
    ASSERT_LE(bytes_of_all(), 500);
  }
  EXPECT_TRUE(has(folder, 1));
  EXPECT_FALSE(has(folder, 2));
  EXPECT_TRUE(has(folder, 6));
  EXPECT_TRUE(has(folder, 7));
  EXPECT_EQ(write(folder, 8, 20, 501), Outcome::kUnfit);
  // An engine with less room deletes what an earlier one left.
  ChunkFolder smaller(folder_, 250);
  EXPECT_EQ(smaller.clean(), Outcome::kDone);
  EXPECT_LE(bytes_of_all(), 250);
  EXPECT_TRUE(has(smaller, 7));
}

TEST_F(ChunkFolderTest, SeesWhatOthersWrite) {
  ChunkFolder one(folder_, 1000);
  ChunkFolder other(folder_, 1000);
  for (int number = 1; number <= 100; ++number) {
    ASSERT_EQ(write(number % 2 == 0 ? one : other, number, number), Outcome::kDone);
    ASSERT_LE(bytes_of_all(), 1200);
  }
  EXPECT_TRUE(has(one, 99));
  fs::remove(file(99));
  EXPECT_FALSE(has(one, 99));
}

TEST_F(ChunkFolderTest, ReadsNothingButRegularFilesOfTheRightLength) {
  ChunkFolder folder(folder_, 10000);
  ASSERT_EQ(write(folder, 1, 1), Outcome::kDone);
  ASSERT_EQ(write(folder, 2, 1, 99), Outcome::kDone);
  fs::create_directory(file(3));
  ASSERT_EQ(mkfifo(file(4).c_str(), 0600), 0);
  fs::create_symlink(file(1), file(5));
  std::ofstream(file(6)).flush();
  std::vector<std::byte> read(100);
  for (int number = 2; number <= 6; ++number) {
    EXPECT_EQ(folder.find(key(number), read), Outcome::kUnfit) << number;
    EXPECT_EQ(folder.remove(key(number)), Outcome::kDone) << number;
    EXPECT_EQ(folder.find(key(number), read), Outcome::kAbsent) << number;
  }
  EXPECT_TRUE(has(folder, 1));
}

TEST_F(ChunkFolderTest, LeavesAloneWhatIsNotItsOwn) {
  ChunkFolder folder(folder_, 300);
  const std::vector<std::string> names = {"notes.txt", "00.chunk", ".chunk-partial", hexadecimal(key(1)),
                                          ".chunk-partial-mine"};
  for (const std::string& name : names) std::ofstream(folder_ / name) << std::string(1000, 'x');
  for (int number = 1; number <= 9; ++number) ASSERT_EQ(write(folder, number, number), Outcome::kDone);
  for (const std::string& name : names) EXPECT_EQ(fs::file_size(folder_ / name), 1000u) << name;
}

TEST_F(ChunkFolderTest, DeletesWhatAWriterLeftBehindUnlessItStillWrites) {
  ChunkFolder folder(folder_, 1000);
  const fs::path left = folder_ / ".chunk-partial-123-4";
  const fs::path busy = folder_ / ".chunk-partial-123-5";
  std::ofstream(left) << "half";
  const int writer = open(busy.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(writer, 0);
  ASSERT_EQ(flock(writer, LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(folder.clean(), Outcome::kDone);
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(busy));
  close(writer);
  EXPECT_EQ(folder.clean(), Outcome::kDone);
  EXPECT_FALSE(fs::exists(busy));
}

TEST_F(ChunkFolderTest, WritesAlthoughOthersTakeItsFileForAbandonedBeforeItIsLocked) {
  ChunkFolder folder(folder_, 100000);
  std::atomic<bool> stop = false;
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back([&] {
      ChunkFolder other(folder_, 100000);
      while (!stop) EXPECT_EQ(other.clean(), Outcome::kDone);
    });
  }
  int failed = 0;
  for (int i = 0; i < 5000; ++i) failed += write(folder, i % 4, i) != Outcome::kDone ? 1 : 0;
  stop = true;
  for (std::thread& other : others) other.join();
  EXPECT_EQ(failed, 0);
}

TEST_F(ChunkFolderTest, SaysThatItCannotWrite) {
  ChunkFolder folder(folder_, 1000);
  fs::create_directories(file(1) / "something");
  EXPECT_EQ(write(folder, 1, 1), Outcome::kFailed);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);  // no temporary file stays
  EXPECT_EQ(folder.remove(key(1)), Outcome::kFailed);
  fs::remove_all(folder_);
  EXPECT_EQ(write(folder, 2, 1), Outcome::kFailed);
  EXPECT_FALSE(has(folder, 2));
}

TEST_F(ChunkFolderTest, ThatCannotBeThereIsRefused) {
  const fs::path in_the_way = parent_.write("file", "text");
  EXPECT_THROW(ChunkFolder(in_the_way, 1000), Error);
  EXPECT_THROW(ChunkFolder(in_the_way / "folder", 1000), Error);
}

TEST_F(ChunkFolderTest, ASlashBehindItsNameChangesNothing) {
  const fs::path with_slash = folder_ / "";
  ChunkFolder folder(with_slash, 1000);
  EXPECT_EQ(write(folder, 1, 50), Outcome::kDone);
  EXPECT_EQ(fs::status(folder_).permissions(), fs::perms::owner_all);
}

}  // namespace
}  // namespace verbatim
