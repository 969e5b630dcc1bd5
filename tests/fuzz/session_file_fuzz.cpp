// Any bytes as the file of a saved session, their checksum made right: an Error, or tokens of the model.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/crc64.h"
#include "engine/session_file.h"
#include "verbatim/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kChecksum = 208;
  constexpr size_t kHeader = kChecksum + sizeof(uint64_t);
  constexpr int32_t kVocabulary = 256;
  std::vector<std::byte> bytes(size);
  std::transform(data, data + size, bytes.begin(), [](uint8_t byte) { return std::byte{byte}; });
  if (size >= kHeader) {
    const std::span<const std::byte> all(bytes);
    const uint64_t sum = verbatim::crc64(all.subspan(kHeader), verbatim::crc64(all.first(kChecksum)));
    std::memcpy(bytes.data() + kChecksum, &sum, sizeof(sum));
  }
  try {
    const verbatim::LoadedSession loaded = verbatim::parse_session(
        bytes, "fuzz", {.name = "model", .fingerprint = 0, .vocab_size = kVocabulary});
    for (const int32_t token : loaded.session.tokens) {
      if (token < 0 || token >= kVocabulary) std::abort();
    }
    if (loaded.stored.size() > size || loaded.session.positions > std::ssize(loaded.session.tokens))
      std::abort();
  } catch (const verbatim::Error&) {
  }
  return 0;
}
