#include "base/aligned_buffer.h"

#include <sys/mman.h>

#include "base/error.h"
#include "base/matrix.h"

namespace verbatim {

namespace {
constexpr size_t kHugePage = size_t{2} << 20;
}

AlignedBuffer::AlignedBuffer(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* address =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    fail(ErrorKind::kMachine,
         "cannot allocate {:.2f} GiB of memory: free some, or use a smaller model or context",
         static_cast<double>(bytes) / static_cast<double>(1u << 30));
  }
  if (bytes >= kHugePage) madvise(address, bytes, MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(address);
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace verbatim
