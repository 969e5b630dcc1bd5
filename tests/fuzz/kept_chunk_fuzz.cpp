// Any bytes as the file of a kept chunk, as they are or with their checksum made right: nothing, or the keys
// and values of the very chunk that was asked for.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/crc64.h"
#include "kv/kept_chunk.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using verbatim::KeptChunkHeader;
  constexpr size_t kStored = 64;
  constexpr size_t kChecksum = offsetof(KeptChunkHeader, checksum);
  std::array<int32_t, 128> tokens{};
  std::iota(tokens.begin(), tokens.end(), 0);
  const KeptChunkHeader expected = verbatim::kept_chunk_header({}, {}, tokens, kStored);
  const std::span<const std::byte> given(reinterpret_cast<const std::byte*>(data), size);
  verbatim::kept_chunk(given, expected);
  std::vector<std::byte> bytes(given.begin(), given.end());
  if (size >= sizeof(KeptChunkHeader)) {
    const std::span<const std::byte> all(bytes);
    const uint64_t before = verbatim::crc64(all.first(kChecksum));
    const uint64_t sum = verbatim::crc64(all.subspan(sizeof(KeptChunkHeader)), before);
    std::memcpy(bytes.data() + kChecksum, &sum, sizeof(sum));
  }
  const std::span<const std::byte> found = verbatim::kept_chunk(bytes, expected);
  if (found.empty()) return 0;
  const bool whole = size == sizeof(KeptChunkHeader) + kStored && found.size() == kStored;
  if (!whole || std::memcmp(bytes.data(), &expected, kChecksum) != 0) std::abort();
  if (!std::ranges::equal(found, given.last(kStored))) std::abort();
  return 0;
}
