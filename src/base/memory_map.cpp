#include "base/memory_map.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/error.h"
#include "base/input_file.h"

namespace verbatim {

MemoryMap::MemoryMap(const std::filesystem::path& path, size_t most) : path_(path) {
  const int file = open_input(path);
  struct stat status {};
  if (fstat(file, &status) != 0) status.st_size = 0;
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0 || size_ > most) {
    close(file);
    if (size_ == 0) bad_input("{} is empty", path.string());
    bad_input("{} has {} bytes, which is too large: at most {} are read", path.string(), size_, most);
  }
  void* address = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
  const int error = errno;
  close(file);
  if (address == MAP_FAILED) {
    const std::string cause = std::generic_category().message(error);
    if (error != ENOMEM) bad_input("cannot map {}: {}", path.string(), cause);
    fail(ErrorKind::kMachine,
         "cannot map {} of {} bytes: {}; raise the limit of this process (`ulimit -v`) or free memory",
         path.string(), size_, cause);
  }
  data_ = static_cast<const std::byte*>(address);
}

MemoryMap::~MemoryMap() {
  munmap(const_cast<std::byte*>(data_), size_);
}

void MemoryMap::release() const {
  madvise(const_cast<std::byte*>(data_), size_, MADV_DONTNEED);  // a hint: that it fails harms nothing
}

}  // namespace verbatim
