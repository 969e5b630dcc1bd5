#pragma once

#include <filesystem>
#include <optional>

#include "base/output_file.h"

namespace verbatim {

/// Throws Error(kBadInput) if `target` exists already, also as a link that leads nowhere, or if the folder in
/// which it should be made does not.
void require_free_name(const std::filesystem::path& target);

/// A file that appears under its name when it is complete and on the disk, or not at all. Until keep() it has
/// a temporary name in the same folder; a file without keep() is removed.
class NewFile {
 public:
  /// Makes the file under its temporary name. Throws Error(kBadInput) if `target` exists already, or if no
  /// file can be made there.
  explicit NewFile(const std::filesystem::path& target);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  OutputFile& out() { return *file_; }
  /// The path of the file until keep(), under its temporary name.
  const std::filesystem::path& path() const { return path_; }
  /// Writes everything to the disk and gives the file its name. Throws Error(kMachine) if that fails, and
  /// Error(kBadInput) if another file has taken the name meanwhile.
  void keep();

 private:
  std::filesystem::path target_;
  std::filesystem::path path_;
  std::optional<OutputFile> file_;
  bool kept_ = false;
};

}  // namespace verbatim
