#pragma once

#include <filesystem>
#include <optional>

#include "base/output_file.h"

namespace verbatim {

/// A file that appears under its name when it is complete and on the disk, or not at all. Until keep() it has
/// a name of its own beside that; without keep() it is removed.
class NewFile {
 public:
  /// Throws Error(kBadInput) when there is something under the name already, or when no file can be made
  /// there.
  explicit NewFile(const std::filesystem::path& target);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  OutputFile& out() { return *file_; }
  /// Brings what was written to the disk and gives the file its name. Throws Error(kMachine), or
  /// Error(kBadInput) when something else took the name meanwhile.
  void keep();

 private:
  std::filesystem::path target_;
  std::filesystem::path path_;
  std::optional<OutputFile> file_;
  bool kept_ = false;
};

}  // namespace verbatim
