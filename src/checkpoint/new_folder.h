#pragma once

#include <filesystem>
#include <string_view>

namespace verbatim {

/// A folder that appears under its name when it is complete, or not at all. Until keep() it has a name of its
/// own beside that; without keep() it is removed with all it holds.
class NewFolder {
 public:
  /// Throws Error(kBadInput) when there is something under the name, unless it is an empty folder, or when no
  /// folder can be made there.
  explicit NewFolder(const std::filesystem::path& target);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  /// Where it is while it is filled.
  const std::filesystem::path& path() const { return path_; }
  /// Writes a file into it. Throws Error(kMachine).
  void write(const char* name, std::string_view text) const;
  /// Copies a file into it, whose name it keeps. Throws Error(kMachine).
  void copy(const std::filesystem::path& file) const;
  /// Gives the folder its name. Throws Error(kMachine).
  void keep();

 private:
  std::filesystem::path target_;
  std::filesystem::path path_;
  bool kept_ = false;
};

}  // namespace verbatim
