#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/sha256.h"

namespace verbatim {

/// A folder of files that are named after keys, of which the least recently used are deleted when they take
/// more than a number of bytes. A file appears under its name when it is written whole. Other programs and
/// other objects of this class may use the folder at the same time and delete any file. Whatever in the
/// folder is not named after a key is left alone, but for temporary files that nobody writes any more.
///
/// No member but the constructor throws because of the disk: what fails is said, and otherwise has no effect.
/// find(), remove() and use() may be called by several threads; the other members by one at a time.
class ChunkFolder {
 public:
  /// Opens the folder, and makes it, for its owner alone, if it does not exist. Throws Error(kBadInput) if
  /// that fails. `most` is the most bytes that the files may take.
  ChunkFolder(const std::filesystem::path& path, int64_t most);
  ~ChunkFolder();
  ChunkFolder(const ChunkFolder&) = delete;
  ChunkFolder& operator=(const ChunkFolder&) = delete;

  /// What came of an operation on one file.
  enum class Outcome {
    kDone,
    kAbsent,  ///< there is no such file
    kUnfit,   ///< something of that name is no regular file of the wanted length
    kFailed,  ///< the system refuses
  };
  /// Reads the file of a key into `bytes`, which must have its length. It never waits for a pipe or follows a
  /// link.
  Outcome find(const Digest& key, std::span<std::byte> bytes) const;
  /// Deletes what has the name of a key.
  Outcome remove(const Digest& key) const;
  /// Makes a time, in nanoseconds since the epoch, the one at which a file was last used.
  Outcome use(const Digest& key, int64_t time) const;
  /// Writes a file of two parts that was last used at `time`, after making room for it. kUnfit: it is larger
  /// than all files may be.
  Outcome write(const Digest& key, std::span<const std::byte> first, std::span<const std::byte> second,
                int64_t time);
  /// Deletes the temporary files that nobody writes any more, and the least recently used files until all
  /// take `most` bytes at most.
  Outcome clean();

 private:
  /// A file in the folder.
  struct Entry {
    std::string name;
    int64_t bytes = 0;
    int64_t used = 0;
  };
  Outcome list(std::vector<Entry>& entries) const;
  Outcome shrink(int64_t most);
  void remove_abandoned(const char* name) const;
  int open_temporary(std::string& name) const;

  int descriptor_ = -1;
  int64_t most_;
  int64_t bytes_ = 0;     // of all files when they were last listed, and of those written since
  int64_t unlisted_ = 0;  // part of bytes_: written since
};

}  // namespace verbatim
