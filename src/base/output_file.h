#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace verbatim {

/// A new file being written, mostly from its beginning to its end. Failures throw Error(kMachine) naming the
/// file and the cause.
class OutputFile {
 public:
  /// Makes a file. It is a failure if there is a file of that name already.
  explicit OutputFile(const std::filesystem::path& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Overwrites bytes that were written before, from `offset` on. The next write() still appends at the end.
  void write_at(size_t offset, std::span<const std::byte> bytes);
  /// Writes everything to the disk and returns when that is done; a full disk may show only now. Nothing may
  /// be written afterwards.
  void finish();

 private:
  [[noreturn]] void fail_with(int cause) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace verbatim
