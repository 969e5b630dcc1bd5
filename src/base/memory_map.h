#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace verbatim {

/// A whole file mapped read-only. The mapping lives as long as the object.
class MemoryMap {
 public:
  /// Maps a file of at most `most` bytes. Throws Error(kBadInput), naming the file, if it cannot be opened,
  /// is not a regular file, is empty, or is larger; Error(kMachine) if there is no memory to map it.
  explicit MemoryMap(const std::filesystem::path& path, size_t most = SIZE_MAX);
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
