#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace verbatim {

/// A whole file mapped read-only. The mapping lives as long as the object.
class MemoryMap {
 public:
  /// Maps a file. Throws Error(kBadInput), naming the file, if it cannot be opened, is not a regular file, or
  /// is empty.
  explicit MemoryMap(const std::filesystem::path& path);
  ~MemoryMap();
  MemoryMap(const MemoryMap&) = delete;
  MemoryMap& operator=(const MemoryMap&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  /// Gives the memory that reading has taken so far back to the system. Bytes that are read again are fetched
  /// again.
  void release() const;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace verbatim
