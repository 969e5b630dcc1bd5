#include "work_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace verbatim::train {

WorkFile::WorkFile(const std::filesystem::path& path) : path_(path) {
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail_with("opened", errno);
}

WorkFile::~WorkFile() {
  close(descriptor_);
}

void WorkFile::write(int64_t first, std::span<const float> values) {
  std::span<const std::byte> bytes = std::as_bytes(values);
  auto at = static_cast<off_t>(first) * static_cast<off_t>(sizeof(float));
  while (!bytes.empty()) {
    const ssize_t written = pwrite(descriptor_, bytes.data(), bytes.size(), at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail_with("written", written < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<size_t>(written));
    at += written;
  }
}

void WorkFile::read(int64_t first, std::span<float> values) const {
  std::span<std::byte> bytes = std::as_writable_bytes(values);
  auto at = static_cast<off_t>(first) * static_cast<off_t>(sizeof(float));
  while (!bytes.empty()) {
    const ssize_t got = pread(descriptor_, bytes.data(), bytes.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail_with("read", got < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<size_t>(got));
    at += got;
  }
}

void WorkFile::shorten(int64_t count) {
  if (ftruncate(descriptor_, static_cast<off_t>(count) * static_cast<off_t>(sizeof(float))) != 0)
    fail_with("shortened", errno);
}

void WorkFile::sync() {
  if (fdatasync(descriptor_) != 0) fail_with("written to the disk", errno);
}

void WorkFile::fail_with(const char* what, int cause) const {
  fail(ErrorKind::kMachine, "{} cannot be {}: {}", path_.string(), what, std::strerror(cause));
}

}  // namespace verbatim::train
