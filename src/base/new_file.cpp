#include "base/new_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <system_error>

#include "base/error.h"

namespace verbatim {

namespace fs = std::filesystem;

namespace {

/// Writes the entry of the new name in the folder to the disk, if the file system can do that.
void sync_folder(const fs::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

}  // namespace

void require_free_name(const fs::path& target) {
  if (!target.has_filename()) bad_input("\"{}\" names no file", target.string());
  std::error_code failure;
  const fs::file_status status = fs::symlink_status(target, failure);
  if (status.type() != fs::file_type::not_found) {
    if (failure) bad_input("cannot make the file {}: {}", target.string(), failure.message());
    bad_input("{} exists already; remove it or choose another name", target.string());
  }
  const fs::path folder = target.has_parent_path() ? target.parent_path() : ".";
  if (!fs::is_directory(folder, failure)) {
    bad_input("the folder {} in which {} should be made does not exist", folder.string(),
              target.filename().string());
  }
}

NewFile::NewFile(const fs::path& target) : target_(target) {
  require_free_name(target_);
  path_ = fmt::format("{}.partial-{}", target_.string(), getpid());
  file_.emplace(path_);
}

NewFile::~NewFile() {
  if (kept_) return;
  file_.reset();
  std::error_code ignored;
  fs::remove(path_, ignored);
}

void NewFile::keep() {
  file_->finish();
  require_free_name(target_);
  std::error_code failure;
  fs::rename(path_, target_, failure);
  if (failure) {
    fail(ErrorKind::kMachine, "cannot give the finished file the name {}: {}", target_.string(),
         failure.message());
  }
  kept_ = true;
  sync_folder(target_.has_parent_path() ? target_.parent_path() : ".");
}

}  // namespace verbatim
