#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace verbatim::train {

/// A file of floats in which parts are written and read again in any order, from several threads if the parts
/// differ. Failures throw Error(kMachine) naming the file and the cause, a full disk among them.
class WorkFile {
 public:
  /// Opens the file, or makes it.
  explicit WorkFile(const std::filesystem::path& path);
  ~WorkFile();
  WorkFile(const WorkFile&) = delete;
  WorkFile& operator=(const WorkFile&) = delete;

  void write(int64_t first, std::span<const float> values);
  void read(int64_t first, std::span<float> values) const;
  /// Gives up all floats from `count` on.
  void shorten(int64_t count);
  /// Returns when all that was written is on the disk.
  void sync();

 private:
  [[noreturn]] void fail_with(const char* what, int cause) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace verbatim::train
