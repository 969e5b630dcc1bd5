#include "base/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/error.h"

namespace verbatim {

OutputFile::OutputFile(const std::filesystem::path& path)
    : path_(path), descriptor_(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) fail_with(errno);
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void OutputFile::write(std::span<const std::byte> bytes) {
  constexpr size_t kMost = size_t{1} << 30;  // one call takes no more than 2 GiB
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kMost));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_with(errno);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

void OutputFile::write_at(size_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_with(errno);
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += static_cast<size_t>(count);
  }
}

void OutputFile::finish() {
  int result = 0;
  do {
    result = fsync(descriptor_);
  } while (result != 0 && errno == EINTR);
  // Some file systems cannot sync; closing reports what they have to say.
  if (result != 0 && errno != EINVAL && errno != EROFS) fail_with(errno);
  const int descriptor = std::exchange(descriptor_, -1);
  if (close(descriptor) != 0 && errno != EINTR) fail_with(errno);
}

void OutputFile::fail_with(int cause) const {
  fail(ErrorKind::kMachine, "cannot write {}: {}; {}", path_.string(), std::generic_category().message(cause),
       cause == ENOSPC || cause == EDQUOT ? "make room or choose another place" : "choose another place");
}

}  // namespace verbatim
