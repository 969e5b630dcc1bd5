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
  /// What is there already is never written over: that is a failure.
  explicit OutputFile(const std::filesystem::path& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Puts bytes where some were written already; the next write() goes on at the end all the same.
  void write_at(size_t offset, std::span<const std::byte> bytes);
  /// Returns once everything is on the disk: a full one may show only now. Nothing is written after it.
  void finish();

 private:
  [[noreturn]] void fail_with(int cause) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace verbatim
