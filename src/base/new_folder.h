#pragma once

#include <filesystem>
#include <string_view>

namespace verbatim {

/// A folder that appears under its name when it is complete, or not at all. Until keep() it has a temporary
/// name in the same parent; a folder without keep() is removed with its contents.
class NewFolder {
 public:
  /// Makes the folder under its temporary name. Throws Error(kBadInput) if `target` exists and is not an
  /// empty folder, or if no folder can be made there.
  explicit NewFolder(const std::filesystem::path& target);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  /// The path of the folder until keep(), under its temporary name.
  const std::filesystem::path& path() const { return path_; }
  /// Writes a file into the folder. Throws Error(kMachine) if that fails.
  void write(const char* name, std::string_view text) const;
  /// Copies a file into the folder, under the same name. Throws Error(kMachine) if that fails.
  void copy(const std::filesystem::path& file) const;
  /// Gives the folder its name. Throws Error(kMachine) if that fails.
  void keep();

 private:
  std::filesystem::path target_;
  std::filesystem::path path_;
  bool kept_ = false;
};

}  // namespace verbatim
