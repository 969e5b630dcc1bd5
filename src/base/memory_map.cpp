#include "base/memory_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace verbatim {

MemoryMap::MemoryMap(const std::filesystem::path& path) : path_(path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) bad_input("cannot open {}: {}", path.string(), std::strerror(errno));
  struct stat status {};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(file);
    bad_input("{} is not a regular file", path.string());
  }
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) {
    close(file);
    bad_input("{} is empty", path.string());
  }
  void* address = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
  const int error = errno;
  close(file);
  if (address == MAP_FAILED) bad_input("cannot map {}: {}", path.string(), std::strerror(error));
  data_ = static_cast<const std::byte*>(address);
}

MemoryMap::~MemoryMap() {
  munmap(const_cast<std::byte*>(data_), size_);
}

void MemoryMap::release() const {
  madvise(const_cast<std::byte*>(data_), size_, MADV_DONTNEED);  // a hint: that it fails harms nothing
}

}  // namespace verbatim
