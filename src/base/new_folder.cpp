#include "base/new_folder.h"

#include <unistd.h>

#include <system_error>

#include "base/error.h"
#include "base/output_file.h"

namespace verbatim {

namespace fs = std::filesystem;

namespace {

/// The name without links, "." and a slash at the end: a folder cannot be renamed to any of these.
fs::path plain_name(const fs::path& target) {
  if (target.empty()) bad_input("the name of the new folder is empty");
  std::error_code failure;
  fs::path name = fs::weakly_canonical(fs::absolute(target), failure);
  if (failure) bad_input("cannot make the folder {}: {}", target.string(), failure.message());
  if (!name.has_filename()) name = name.parent_path();
  return name;
}

void check_folder_free(const fs::path& target) {
  std::error_code failure;
  const fs::file_status status = fs::symlink_status(target, failure);
  if (status.type() == fs::file_type::not_found) return;
  if (failure) bad_input("cannot make the folder {}: {}", target.string(), failure.message());
  if (!fs::is_directory(status)) {
    bad_input("{} exists already and is no folder; choose another name", target.string());
  }
  const bool empty = fs::is_empty(target, failure);
  if (failure) bad_input("cannot read the folder {}: {}", target.string(), failure.message());
  if (!empty)
    bad_input("the folder {} exists already and is not empty; choose another name", target.string());
}

}  // namespace

NewFolder::NewFolder(const fs::path& target) : target_(plain_name(target)) {
  check_folder_free(target_);
  path_ = fmt::format("{}.partial-{}", target_.string(), getpid());
  std::error_code failure;
  const bool made = fs::create_directory(path_, failure);
  if (failure == std::errc::no_such_file_or_directory) {
    bad_input("the folder {} in which {} should be made does not exist", target_.parent_path().string(),
              target_.filename().string());
  }
  if (failure == std::errc::not_a_directory) {
    bad_input("cannot make the folder {}: {}", target_.string(), failure.message());
  }
  if (failure) {
    fail(ErrorKind::kMachine, "cannot make the folder {}: {}; choose another place", target_.string(),
         failure.message());
  }
  if (!made) bad_input("{} is left over from another time; remove it first", path_.string());
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!kept_) fs::remove_all(path_, ignored);
}

void NewFolder::write(const char* name, std::string_view text) const {
  OutputFile file(path_ / name);
  file.write(text);
  file.finish();
}

void NewFolder::copy(const fs::path& file) const {
  std::error_code failure;
  fs::copy_file(file, path_ / file.filename(), failure);
  if (failure == std::errc::not_a_directory) {
    bad_input("cannot make the folder {}: {}", target_.string(), failure.message());
  }
  if (failure) {
    fail(ErrorKind::kMachine, "cannot copy {} to {}: {}", file.string(), path_.string(), failure.message());
  }
}

void NewFolder::keep() {
  std::error_code failure;
  fs::rename(path_, target_, failure);
  if (failure == std::errc::not_a_directory) {
    bad_input("cannot make the folder {}: {}", target_.string(), failure.message());
  }
  if (failure) {
    fail(ErrorKind::kMachine, "cannot give the finished folder the name {}: {}", target_.string(),
         failure.message());
  }
  kept_ = true;
}

}  // namespace verbatim
