#pragma once

#include <cstdint>
#include <cstring>

#include "container/container.h"

namespace verbatim {

/// The first bytes of a container, in the layout of the file.
struct Preamble {
  char magic[8] = {};  ///< kPackedMagic
  uint32_t version = kContainerVersion;
  uint32_t reserved = 0;
  uint64_t file_bytes = 0;
  uint64_t header_offset = 0;
  uint64_t header_bytes = 0;
  uint64_t header_checksum = 0;
  uint64_t reserved_too = 0;
  uint64_t checksum = 0;  ///< the crc64() of all members before it

  uint64_t own_checksum() const;
};
static_assert(sizeof(Preamble) == kPreambleBytes);

}  // namespace verbatim
